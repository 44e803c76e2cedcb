"""The text of a function that is being generated: the common part of reading, writing and measuring."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from schemas.message import TooManyBytes, TooManyElements
from schemas.primitives import MAX_STRING_BYTES, Entity

NO_LIMIT = sys.maxsize
Place = list[tuple[str, int]]  # the fields that a line reads or writes: path and number of bytes of each


class Refused(ValueError):
    """A field cannot be read or written; `explain` finds its name."""


def refuse(reason: str) -> NoReturn:
    """Raise Refused. Unlike `raise`, it can stand in an expression."""
    raise Refused(reason)


def long_string(length: int) -> int:
    """Check the compact length of a string, which is one more than its number of bytes."""
    return length if length <= MAX_STRING_BYTES + 1 else refuse(f"a string of {length - 1} bytes")


def line_of(failure: BaseException) -> int:
    """The index of the line of the generated text that failed."""
    assert failure.__traceback__ is not None
    return failure.__traceback__.tb_lineno - 1


def join(path: str, name: str) -> str:
    """The path of the field `name` inside the field at `path`."""
    return f"{path}.{name}" if path else name


class Text:
    """The text of a function that is being generated, line by line.

    env: the names that the function uses. Its `explain` returns the exception that is raised for a failure.
    """

    def __init__(
        self, name: str, entity: Entity, version: int, header: str, env: Mapping[str, object]
    ) -> None:
        self.entity = entity
        self.name = name
        self.version = version
        self.env = {
            **env,
            "Refused": Refused,
            "TooManyElements": TooManyElements,
            "TooManyBytes": TooManyBytes,
            "long_string": long_string,
        }
        self.lines = [header, " try:"]
        self.places: list[Place] = [[], []]
        self.depth = 2
        self.count = 0

    def line(self, text: str, place: Place | None = None) -> None:
        self.lines.append(" " * self.depth + text)
        self.places.append(place or [])

    @contextmanager
    def block(self, text: str, place: Place | None = None) -> Iterator[None]:
        """Add the line `text`, and indent all lines that are added within the `with`."""
        self.line(text, place)
        self.depth += 1
        yield
        self.depth -= 1

    def spend(self, count: str) -> None:
        """Generate a count of an array's elements, for before any of them is read or written."""
        self.line(f"left -= {count}")
        self.line("if left < 0: raise TooManyElements")

    def spend_bytes(self, count: str) -> None:
        """Generate a count of the bytes of a string, or of other content of variable length."""
        self.line(f"left_bytes -= {count}")
        self.line("if left_bytes < 0: raise TooManyBytes")

    def new(self, prefix: str) -> str:
        """A new name for a variable, which begins with `prefix`."""
        self.count += 1
        return f"{prefix}{self.count}"

    def constant(self, prefix: str, value: object) -> str:
        """Make a value available to the text, and return its name there."""
        name = self.new(prefix)
        self.env[name] = value
        return name

    def literal(self, value: object) -> str:
        """A Python expression for a default value."""
        plain = value is None or value == () or type(value) in (bool, int, str, bytes)
        return repr(value) if plain else self.constant("default_", value)

    def finish(self, function: str) -> Any:
        """Compile the text, and return the function that it defines. function: the function's name."""
        code = compile("\n".join(self.lines), f"<{self.name} v{self.version} {function}>", "exec")
        exec(code, self.env)
        return self.env[function]
