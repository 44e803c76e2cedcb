"""Turns messages into dicts, lists and texts that two servers' answers can be compared by."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any
from uuid import UUID

from schemas.error_code import ErrorCode

NO_ID = UUID(int=0)


class Plain:
    """Walks through messages. A subclass overrides what varies from server to server, or from run to run."""

    sets: Collection[tuple[str, str]] = ()
    """Arrays whose order means nothing, each as the name of its class and of its field."""

    def plain(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return [self.plain(item) for item in value if not self.is_foreign(item)]
        if isinstance(value, UUID):
            return self.plain_id(value)
        if isinstance(value, str):
            return self.plain_text(value)
        if not hasattr(value, "__dataclass_fields__"):
            return value
        return {
            each.name: self.plain_field(type(value).__name__, each.name, getattr(value, each.name))
            for each in dataclasses.fields(value)
            if each.name != "unknown_tags" or value.unknown_tags
        }

    def plain_field(self, entity: str, name: str, value: Any) -> Any:
        """A field of a message of the class `entity`."""
        if name == "throttle_time_ms":
            return 0
        if name == "error_code":
            return ErrorCode(value).name
        plain = self.plain(value)
        is_set = isinstance(plain, list) and self.is_set(entity, name)
        return sorted(plain, key=repr) if is_set else plain

    def is_set(self, entity: str, name: str) -> bool:
        """True if the order of an array means nothing."""
        return (entity, name) in self.sets

    def plain_id(self, value: UUID) -> Any:
        """A topic id."""
        return "no id" if value == NO_ID else "an id"

    def plain_text(self, value: str) -> str:
        return value

    def is_foreign(self, item: Any) -> bool:
        """True if an item of an array belongs to another test."""
        return False
