"""A request as the routes see it, and their answers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kshim.recorder.one_line import CONTROLS
from kshim.requests.context import Turn
from kshim.requests.rounds import Rounds
from kshim.requests.slices import Slices

JSON = "application/json"
PIECE_BYTES = 16 * 1024
"""Rows of a listing are sent when there is so much of them."""


class HttpError(Exception):
    """A request is answered with an error. str() is one line that says what is wrong and what is right."""

    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.headers = headers or {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request whose route is known."""

    names: Sequence[str] = ()
    """What stands for {names} in the route's path."""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """By their names in lower case."""
    body: bytes = b""
    slices: Slices

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number of the query. Raises HttpError."""
        text = self.query.get(name, str(default))
        if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
            raise HttpError(400, f"{name}={text[:100]}: expected a whole number from {low} to {high}")
        return int(text)


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back. A body in pieces is made while it is sent."""

    body: bytes | AsyncGenerator[bytes, None]
    content_type: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def encode(value: Any) -> bytes:
    """A JSON value, readable in a terminal, which its strings cannot steer."""
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    if CONTROLS.search(text):
        text = CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text.encode()


def json_answer(value: Any, status: int = 200) -> Answer:
    """A small JSON value as an answer."""
    return Answer(encode(value) + b"\n", status=status)


def error_answer(error: HttpError) -> Answer:
    """One line that says what is wrong."""
    why = " ".join(str(error).split())
    return Answer(encode({"error": why}) + b"\n", status=error.status, headers=error.headers)


class Long(NamedTuple):
    """A JSON object with lists that may be long, made and sent in pieces."""

    facts: Mapping[str, Any]
    """What else it has; this comes first."""
    lists: Mapping[str, AsyncIterator[Any]]
    """JSON values, or more such objects."""


def listing(name: str, rows: AsyncIterator[Any]) -> Answer:
    """{name: [row, ...]}, sent as the rows come."""
    return long_answer(Long({}, {name: rows}))


def long_answer(value: Long) -> Answer:
    """A JSON object with long lists as an answer."""
    return Answer(_pieces(value))


async def _pieces(value: Long) -> AsyncGenerator[bytes, None]:
    piece = bytearray()
    async for part in _parts(value):
        piece += part
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece + b"\n")


async def _parts(value: Long) -> AsyncIterator[bytes]:
    yield encode(value.facts)[:-1]
    between = b", " if value.facts else b""
    for name, items in value.lists.items():
        yield between + encode(name) + b": ["
        between = b"\n"
        async for item in items:
            yield between
            between = b",\n"
            if isinstance(item, Long):
                async for part in _parts(item):
                    yield part
            else:
                yield encode(item)
        yield b"]"
        between = b", "
    yield b"}"


def new_slices(rounds: Rounds) -> Slices:
    """For a request that is answered while others are."""
    return Slices(rounds, Turn())
