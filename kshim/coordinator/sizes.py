"""How large records will be, of which one batch holds as many as `message.max.bytes` allows; what does not
fit is refused, as in Kafka.

These are estimates, in which a character counts as one byte: the limit is against excess, not exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from kshim.coordinator.classic_group import ClassicGroup
from kshim.coordinator.decision import Record
from schemas.group_metadata_log import OffsetCommitKey, OffsetCommitValue

BATCH_BYTES = 100
"""Of a batch and the one record of a group, without names and members."""
MEMBER_BYTES = 30
"""Of a member without its names, subscription and assignment."""
OFFSET_BYTES = 50
"""Of an offset without its names and metadata."""
NOT_MEASURED = 5
"""So few offsets are not measured: theirs is the hot path."""


def group_bytes(group: ClassicGroup) -> int:
    """The size of a batch with the record of `group`. O(members)."""
    name = group.protocol_name
    return BATCH_BYTES + sum(
        MEMBER_BYTES
        + 2 * len(member.member_id)
        + len(member.client_id)
        + len(member.client_host)
        + len(member.metadata(name))
        + len(member.assignment)
        for member in group.members.values()
    )


def offsets_bytes(records: Sequence[Record]) -> int:
    """The size of a batch of offsets; 0 where they are so few that it does not matter."""
    if len(records) <= NOT_MEASURED:
        return 0
    return BATCH_BYTES + sum(
        OFFSET_BYTES + len(key.group) + len(key.topic) + len(value.metadata)
        for key, value in records
        if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue)
    )
