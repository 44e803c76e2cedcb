"""What survives a restart: each group's last metadata record and its committed offsets.

`replay` is the only writer, at run time and at start-up alike, so that what a coordinator knows after
a restart is what it knew before.
"""

from __future__ import annotations

from collections.abc import Iterable

from kshim.coordinator.decision import Record
from schemas.group_metadata_log import GroupMetadataValue, OffsetCommitKey, OffsetCommitValue


class HardState:
    """The records of one shard, by what they are about."""

    __slots__ = ("groups", "offsets")

    def __init__(self) -> None:
        self.groups: dict[str, GroupMetadataValue] = {}
        self.offsets: dict[str, dict[tuple[str, int], OffsetCommitValue]] = {}
        """By group id, then by (topic, partition index)."""

    def replay(self, record: Record) -> None:
        """Apply one record, in the order of the log. A tombstone of something unknown changes nothing."""
        key, value = record
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            self._replay_offset(key, value)
        elif value is None:
            self.groups.pop(key.group, None)
        else:
            assert isinstance(value, GroupMetadataValue)
            self.groups[key.group] = value

    def group_ids(self) -> Iterable[str]:
        """Every group that has a record of any kind, once, in an order that only the records decide."""
        return dict.fromkeys((*self.groups, *self.offsets))

    def _replay_offset(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        partition = (key.topic, key.partition)
        if value is not None:
            self.offsets.setdefault(key.group, {})[partition] = value
            return
        committed = self.offsets.get(key.group)
        if committed is not None and committed.pop(partition, None) is not None and not committed:
            del self.offsets[key.group]
