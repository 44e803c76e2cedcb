"""A request as the routes see it, and their answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kshim.control.long import Long, encode, pieces
from kshim.turns import Turn
from kshim.turns.rounds import Rounds
from kshim.turns.slices import Slices

JSON = "application/json"


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
    """The segments of the path in place of the route's {names}."""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """Values by the header's name in lower case."""
    body: bytes = b""
    host: str = "/127.0.0.1"
    """The asker's, as Java prints it."""
    slices: Slices

    def asking(self, **query: str) -> Asked:
        """The same request with other values in the query."""
        return replace(self, query={**self.query, **query})

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """Return a whole number from the query. Raises HttpError if it is none, or not from low to high."""
        text = self.query.get(name, str(default))
        if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
            raise HttpError(400, f"{name}={text[:100]}: expected a whole number from {low} to {high}")
        return int(text)


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to a request. A body in pieces is made while it is sent."""

    body: bytes | AsyncGenerator[bytes, None]
    content_type: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def json_answer(value: object, status: int = 200) -> Answer:
    """A small JSON value as an answer."""
    return Answer(encode(value) + b"\n", status=status)


def error_answer(error: HttpError) -> Answer:
    """The error as an answer: JSON with one line that says what is wrong."""
    why = " ".join(str(error).split())
    return Answer(encode({"error": why}) + b"\n", status=error.status, headers=error.headers)


def listing(name: str, rows: AsyncIterator[object]) -> Answer:
    """{name: [row, ...]}, sent as the rows come."""
    return long_answer(Long({}, {name: rows}))


def long_answer(value: Long) -> Answer:
    """A JSON object with long lists as an answer."""
    return Answer(_lines(value))


async def _lines(value: Long) -> AsyncGenerator[bytes, None]:
    async for piece in pieces(value):
        yield piece
    yield b"\n"


def new_slices(rounds: Rounds) -> Slices:
    """Slices for one request, which let other requests be served between two of them."""
    return Slices(rounds, Turn())
