"""What an expiry run deleted from a group, for people who wonder where their offsets are."""

from __future__ import annotations

from typing import NamedTuple


class ExpiryReport(NamedTuple):
    """How many offsets of a group have expired, and whether the group was deleted as well."""

    group_id: str
    offsets: int
    is_deleted: bool
    kind: str = "offsets expired"

    def __str__(self) -> str:
        expired = [f"{self.offsets} offset(s) expired"] if self.offsets else []
        deleted = ["deleted, for it has no members and no offsets"] if self.is_deleted else []
        return f"group {self.group_id}: {'; '.join(expired + deleted)}"
