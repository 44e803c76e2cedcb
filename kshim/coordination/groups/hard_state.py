"""The state that survives a restart: each group's last metadata record, its committed offsets, and the
offsets that are pending in transactions.

`replay` and `end_transaction` are the only writers, at run time and at start-up alike, so a restart does not
change what a coordinator knows. One exception: `stored_records` writes plain commits directly when it loads
them, to the same effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kshim.coordination.decision import GroupRecord
from kshim.coordination.fencing import Fencing, ProducerIdAndEpoch
from kshim.coordination.groups.consumer.store import ConsumerGroups
from kshim.coordination.groups.group_offsets import GroupOffsets
from kshim.coordination.groups.pending_offsets import Partition, PendingOffsets
from schemas.internal_topics.consumer_group_log import ConsumerGroupKey, ConsumerGroupValue
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from schemas.message import MalformedMessage
from schemas.records.end_txn_marker import EndTxnMarker


class HardState:
    """The records of one shard, sorted into groups, offsets and pending offsets; and its fencing."""

    __slots__ = ("consumer", "fencing", "groups", "offsets", "pending")

    def __init__(self) -> None:
        self.groups: dict[str, GroupMetadataValue] = {}
        self.consumer = ConsumerGroups()
        self.offsets: dict[str, GroupOffsets] = {}
        self.pending = PendingOffsets()
        self.fencing = Fencing()

    def replay(self, records: Iterable[GroupRecord], producer: ProducerIdAndEpoch | None = None) -> None:
        """Apply records in the order of the log. A tombstone for an unknown key changes nothing. Records of
        consumer groups are passed over: they are applied when they are written; see `consumer.writing`.

        producer: the producer whose transaction the records are part of; None if they count at once.
        """
        for key, value in records:
            if isinstance(key, OffsetCommitKey):
                assert value is None or isinstance(value, OffsetCommitValue)
                self._replay_offset(key, value, producer)
            elif not isinstance(key, GroupMetadataKey):
                continue
            elif value is None:
                self.groups.pop(key.group, None)
            else:
                assert isinstance(value, GroupMetadataValue)
                self.groups[key.group] = value
        if producer is not None:
            self.fencing.wrote(producer)

    def load_consumer_record(self, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> None:
        """Apply a stored record of a consumer group. Raises MalformedMessage if it cannot follow those
        before.

        A consumer group takes the place of a classic group that never had members; such a group is there as
        long as it has offsets.
        """
        classic = self.groups.get(key.group)
        if classic is not None and value is not None:
            if classic.members or classic.protocol_type:
                reason = f"group {key.group} is a classic group"
                raise MalformedMessage(reason, api=type(key).__name__, version=0)
            del self.groups[key.group]
        self.consumer.load(key, value)

    def end_transaction(self, marker: EndTxnMarker) -> None:
        """Make a transaction's offsets count if it is committed, else forget them; note its epochs.

        A transaction without offsets in this shard only changes the epochs.
        """
        self.fencing.ended(marker)
        for group_id, partition, value in self.pending.end(marker.producer_id, committed=marker.committed):
            self.of_group(group_id)[partition] = value

    def of_group(self, group_id: str) -> dict[tuple[str, int], OffsetCommitValue | bytes]:
        """The dict that holds a group's offsets, for writing; see `GroupOffsets.stored`."""
        offsets = self.offsets.get(group_id)
        if offsets is None:
            offsets = self.offsets[group_id] = GroupOffsets()
        return offsets.stored

    def group_ids(self) -> Iterable[str]:
        """Every group that has a record of any kind, once. The order depends on the records alone."""
        return dict.fromkeys((*self.groups, *self.offsets, *self.pending.group_ids()))

    def values(self, group_id: str, partition: Partition) -> Iterator[OffsetCommitValue]:
        """The offsets of a partition, committed and pending."""
        committed = self.offsets.get(group_id)
        if committed is not None and partition in committed:
            yield committed[partition]
        yield from self.pending.values(group_id, partition)

    def _replay_offset(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer: ProducerIdAndEpoch | None
    ) -> None:
        if value is None:
            self._forget_offset(key)
        elif producer is not None:
            self.pending.add(producer.producer_id, key, value)
        else:
            self.of_group(key.group)[key.topic, key.partition] = value
            if self.pending:
                self.pending.overtake(key)

    def _forget_offset(self, key: OffsetCommitKey) -> None:
        if self.pending:
            self.pending.forget(key)
        committed = self.offsets.get(key.group)
        if committed is None:
            return
        if committed.stored.pop((key.topic, key.partition), None) is not None and not committed.stored:
            del self.offsets[key.group]
