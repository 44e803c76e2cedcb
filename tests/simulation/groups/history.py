"""A history as readable lines: when, who, what, and the message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any
from uuid import UUID

from schemas.error_code import ErrorCode

Happened = tuple[int, str, str, Any]
"""When (ms from the start), who, what it does, and with what, mostly a message."""

_SILENT = (None, "", (), b"", 0, -1, UUID(int=0))


def lines(happened: Iterable[Happened]) -> Iterable[str]:
    for at_ms, who, what, detail in happened:
        yield f"{at_ms / 1000:9.3f}  {who:8} {what:22} {'' if detail is None else described(detail)}".rstrip()


def described(value: Any) -> str:
    """A message with its fields, without those that are empty."""
    if isinstance(value, tuple):
        inside = ", ".join(map(described, value))
        return f"{type(value).__name__}({inside})" if hasattr(value, "_fields") else f"[{inside}]"
    if not is_dataclass(value):
        return repr(value) if isinstance(value, bytes) else str(value)
    said = [
        f"{field.name}={_field(field.name, getattr(value, field.name))}"
        for field in fields(value)
        if field.name == "error_code" or getattr(value, field.name) not in _SILENT
    ]
    return f"{type(value).__name__}({', '.join(said)})"


def _field(name: str, value: Any) -> str:
    return ErrorCode(value).name if name == "error_code" else described(value)
