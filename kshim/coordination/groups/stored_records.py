"""Replays a shard's stored records without decoding most of them, as most are commits of offsets.

A group commits again and again for the same topics. So the part of the key that names group and topic is
decoded once, and a plain value stays encoded. All other records are decoded, and replayed as at run time.
"""

from __future__ import annotations

from collections.abc import Iterable

from kshim.coordination.fencing import ProducerIdAndEpoch
from kshim.coordination.groups.hard_state import HardState
from kshim.coordination.groups.records import decode_record
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    is_plain_offset_commit,
)


class StoredRecords:
    """The records of a shard while it is loading."""

    __slots__ = ("_hard_state", "_names")

    def __init__(self, hard_state: HardState) -> None:
        self._hard_state = hard_state
        self._names: dict[bytes, tuple[str, str]] = {}
        """Group id and topic by the key of an offset without its last four bytes, which are the partition."""

    def replay(
        self, records: Iterable[tuple[bytes, bytes | None]], producer: ProducerIdAndEpoch | None
    ) -> list[bytes]:
        """Apply records in the order of the log; return the keys of unknown kinds, which are skipped.

        Raises MalformedMessage.
        """
        unknown = []
        state, names = self._hard_state, self._names
        may_be_plain = producer is None and not state.pending
        for key, value in records:
            if may_be_plain and value is not None and is_plain_offset_commit(value):
                name = names.get(key[:-4])
                if name is not None:
                    group_id, topic = name
                    state.of_group(group_id)[topic, int.from_bytes(key[-4:], signed=True)] = value
                    continue
            record = decode_record(key, value)
            if record is None:
                unknown.append(key)
                continue
            it = record.key
            if isinstance(it, OffsetCommitKey):
                state.replay((record,), producer)
                names[key[:-4]] = (it.group, it.topic)
            elif isinstance(it, GroupMetadataKey):
                if record.value is not None:  # written by a server that does not know consumer groups
                    state.consumer.discard(it.group)
                state.replay((record,), producer)
            else:
                assert not isinstance(record.value, GroupMetadataValue | OffsetCommitValue)
                state.load_consumer_record(it, record.value)
        return unknown
