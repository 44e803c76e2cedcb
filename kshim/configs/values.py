"""Parsers of properties: functions from the text of a property to its value.

They raise ValueError, which says which values are right.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kshim.configs.endpoint import Endpoint
from kshim.configs.java import INT_MAX, LONG_MAX


def boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return text.lower() == "true"


class Secret(str):
    """A secret text, which repr() hides; empty if there is none."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret()"


def secret(text: str) -> Secret:
    if not re.fullmatch(r"[!-~]*", text):
        raise ValueError("expected letters, digits and signs, without blanks")
    return Secret(text)


def optional_endpoint(text: str) -> Endpoint | None:
    """Parse HOST:PORT; None for the empty text. Raises ValueError, in words for the user."""
    return Endpoint.parse(text) if text else None


def checked_endpoints(text: str) -> str:
    """Return `text` if it is a list of HOST:PORT with commas. Raises ValueError, in words for the user."""
    for part in filter(None, text.split(",")):
        if not Endpoint.parse(part).port:
            raise ValueError("expected HOST:PORT with a port from 1 to 65535")
    return text


def integer(low: int, high: int) -> Callable[[str], int]:
    if high not in (INT_MAX, LONG_MAX):
        expected = f"expected an integer from {low} to {high}"
    else:
        expected = f"expected an integer of at least {low}, at most {high}"

    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or not low <= int(text) <= high:
            raise ValueError(expected)
        return int(text)

    return parse


def retention(high: int) -> Callable[[str], int]:
    """A parser of a retention: -1, which is for ever, or an integer of at least 1."""

    def parse(text: str) -> int:
        value = integer(-1, high)(text)
        if value == 0:
            raise ValueError("expected -1, or an integer of at least 1")
        return value

    return parse


def gzip_level(text: str) -> int:
    if text not in ("-1", *"123456789"):
        raise ValueError("expected -1, or an integer from 1 to 9")
    return int(text)


def ratio(text: str) -> float:
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?|\.[0-9]+", text) or float(text) > 1:
        raise ValueError("expected a number from 0 to 1")
    return float(text)


def one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"expected {' or '.join(choices)}")
        return text

    return parse
