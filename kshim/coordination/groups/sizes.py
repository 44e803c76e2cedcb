"""Checks whether records fit into one batch of `message.max.bytes`. Kafka refuses what does not fit, and so
does kshim.

Most records are so small that the lengths of their texts decide it. The others are encoded and measured.
"""

from __future__ import annotations

from collections.abc import Sequence

from kshim.coordination.decision import GroupRecord
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.records import encode_record
from kshim.coordination.groups.settings import Settings
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from schemas.records import batch as record_batch

UTF8_BYTES = 4
"""The most bytes that one character takes."""
RECORD_BYTES = 200
"""More bytes than a batch with one record takes without the record's texts, and than a member takes in a
group's record.
"""
FEW = 5
"""Commits of at most this many offsets are the hot path."""
FEW_NAMES_BYTES = FEW * (RECORD_BYTES + 2 * 32_767)
"""More bytes than FEW offsets take without their metadata."""


def offsets_fit(records: Sequence[GroupRecord], settings: Settings) -> bool:
    """True if the records of one commit fit into one batch."""
    metadata_bytes = FEW * UTF8_BYTES * settings.offset_metadata_max_bytes
    if len(records) <= FEW and FEW_NAMES_BYTES + metadata_bytes <= settings.message_max_bytes:
        return True
    return _fit(records, settings)


def group_fits(group: ClassicGroup, settings: Settings) -> bool:
    """True if the record of a group fits into one batch. O(members)."""
    return _fit([GroupRecord(GroupMetadataKey(group=group.group_id), group.to_metadata())], settings)


def _fit(records: Sequence[GroupRecord], settings: Settings) -> bool:
    limit = settings.message_max_bytes
    return sum(map(_at_most, records)) <= limit or batch_bytes(records) <= limit


def batch_bytes(records: Sequence[GroupRecord]) -> int:
    """The size of the batch in which these records are stored, in bytes."""
    return len(
        record_batch.encode(
            record_batch.Record(delta, 0, *encode_record(record)) for delta, record in enumerate(records)
        )
    )


def _at_most(record: GroupRecord) -> int:
    key, value = record
    characters = len(key.group)
    if isinstance(key, OffsetCommitKey):
        characters += len(key.topic)
    if value is None:
        return RECORD_BYTES + UTF8_BYTES * characters
    if isinstance(value, OffsetCommitValue):
        return RECORD_BYTES + UTF8_BYTES * (characters + len(value.metadata))
    assert isinstance(value, GroupMetadataValue)
    characters += len(value.protocol_type) + len(value.protocol or "") + len(value.leader or "")
    size = RECORD_BYTES * (1 + len(value.members))
    for member in value.members:
        characters += len(member.member_id) + len(member.group_instance_id or "")
        characters += len(member.client_id) + len(member.client_host)
        size += len(member.subscription) + len(member.assignment)
    return size + UTF8_BYTES * characters
