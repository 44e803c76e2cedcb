"""The text of a function while it is being written: the common part of reading and writing."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from schemas.message import TooManyBytes, TooManyElements
from schemas.primitives import MAX_STRING_BYTES

NO_LIMIT = sys.maxsize
Place = list[tuple[str, int]]  # what a line reads or writes: paths of fields, and how many bytes each


class Refused(ValueError):
    """A field cannot be read or written; `explain` finds out which one."""


def refuse(reason: str) -> NoReturn:
    """Raise Refused, in an expression."""
    raise Refused(reason)


def long_string(length: int) -> int:
    """Check the compact length of a string, which is one more than its number of bytes."""
    return length if length <= MAX_STRING_BYTES + 1 else refuse(f"a string of {length - 1} bytes")


def line_of(failure: BaseException) -> int:
    """The index, in the text, of the line that failed."""
    assert failure.__traceback__ is not None
    return failure.__traceback__.tb_lineno - 1


def join(path: str, name: str) -> str:
    """The path of a field inside another."""
    return f"{path}.{name}" if path else name


class Text(ABC):
    """The text of a function while it is being written."""

    def __init__(self, name: str, entity: Any, version: int, header: str, env: dict[str, Any]) -> None:
        self.entity = entity
        self.name = name
        self.version = version
        self.env = env | {
            "Refused": Refused,
            "TooManyElements": TooManyElements,
            "TooManyBytes": TooManyBytes,
            "long_string": long_string,
            "explain": self.explain,
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
        """Indent under `text` all lines that are written inside the `with`."""
        self.line(text, place)
        self.depth += 1
        yield
        self.depth -= 1

    def spend(self, count: str) -> None:
        """Count the elements of an array, before any of them is read or written."""
        self.line(f"left -= {count}")
        self.line("if left < 0: raise TooManyElements")

    def spend_bytes(self, count: str) -> None:
        """Count the bytes of a string, or of other content of any length."""
        self.line(f"left_bytes -= {count}")
        self.line("if left_bytes < 0: raise TooManyBytes")

    def new(self, prefix: str) -> str:
        """A variable that no other line uses."""
        self.count += 1
        return f"{prefix}{self.count}"

    def constant(self, prefix: str, value: Any) -> str:
        """A name for a value that the text cannot spell."""
        name = self.new(prefix)
        self.env[name] = value
        return name

    def literal(self, value: Any) -> str:
        """A default value as text."""
        plain = value is None or value == () or type(value) in (bool, int, str, bytes)
        return repr(value) if plain else self.constant("default_", value)

    @abstractmethod
    def explain(self, *arguments: Any) -> Exception:
        """The exception that the function raises if it fails."""

    def finish(self, function: str) -> Any:
        """The function that the text defines."""
        code = compile("\n".join(self.lines), f"<{self.name} v{self.version} {function}>", "exec")
        exec(code, self.env)
        return self.env[function]
