"""Reports what an expiry run has deleted from a group, for people who miss their offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from schemas.internal_topics.group_metadata_log import OffsetCommitValue


class ExpiryReport(NamedTuple):
    """The offsets of a group that have expired, and whether the group was deleted as well."""

    group_id: str
    offsets: Mapping[tuple[str, int], OffsetCommitValue]
    """By topic and partition."""
    is_deleted: bool
    kind: str = "offsets expired"

    def __str__(self) -> str:
        expired = [f"{len(self.offsets)} offset(s) expired"] if self.offsets else []
        deleted = ["deleted, for it has no members and no offsets"] if self.is_deleted else []
        return f"group {self.group_id}: {'; '.join(expired + deleted)}"
