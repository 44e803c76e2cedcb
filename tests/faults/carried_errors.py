"""The errors that an answer carries."""

from __future__ import annotations

from typing import Any


def carried(response: Any, place: tuple[str, ...]) -> list[int]:
    """The error codes at a place of a response, one for each entry of its arrays."""
    name, *inner = place
    value = getattr(response, name)
    return [code for each in value for code in carried(each, tuple(inner))] if inner else [value]
