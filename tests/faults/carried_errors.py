"""The errors that an answer carries."""

from __future__ import annotations

from typing import Any

from kshim.answering import error_answers as errors


def carried(response: Any, place: errors.Place) -> list[int]:
    """The error codes at a place of a response, one for each entry of its arrays."""
    name, *inner = place
    value = getattr(response, name)
    return [code for each in value for code in carried(each, tuple(inner))] if inner else [value]
