"""Commands over HTTP: those that only read, and with http.steering.enable=true all of the control socket."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator

from twisted.internet.defer import maybeDeferred

from kshim.control.commands import SteeringError, are_of_types, run
from kshim.control.long import Long, pieces
from kshim.http.answers import JSON, Answer, Asked, HttpError, json_answer
from kshim.http.facts import Facts

_TYPES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
}
_NOT_TAKEN = (
    "commands that change something are not taken here; start the server with http.steering.enable=true"
)


async def commands(facts: Facts, asked: Asked) -> Answer:
    """GET /commands"""
    found = {name: list(map(_type_name, command.types)) for name, command in sorted(facts.commands.items())}
    return json_answer({"commands": found})


async def command(facts: Facts, asked: Asked) -> Answer:
    """POST /commands/{command}"""
    name = asked.names[0]
    if name not in facts.commands and not facts.is_steered:
        raise HttpError(403, _NOT_TAKEN)
    if name not in facts.commands:
        raise HttpError(404, f"no command {name[:200]!r}; GET /commands lists them all")
    arguments = _arguments(asked, facts.commands[name].types)
    try:
        done = await maybeDeferred(run, facts.commands, name, arguments)
    except SteeringError as error:
        raise HttpError(409, str(error)) from error
    return Answer(_done(done)) if isinstance(done, Long) else json_answer({"done": done})


async def _done(result: Long) -> AsyncGenerator[bytes, None]:
    yield b'{"done": '
    async for piece in pieces(result):
        yield piece
    yield b"}\n"


def _arguments(asked: Asked, types: tuple[type, ...]) -> list[object]:
    """The arguments in the body. Raises HttpError."""
    if asked.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise HttpError(415, f"expected Content-Type: {JSON}")
    expected = f"expected a JSON array of its arguments: [{', '.join(map(_type_name, types))}]"
    try:
        arguments = json.loads(asked.body)
    except (ValueError, RecursionError):
        raise HttpError(400, expected) from None
    if not are_of_types(arguments, types):
        raise HttpError(400, expected)
    return list(arguments)


def _type_name(type_: type) -> str:
    return _TYPES.get(type_, type_.__name__)
