"""Pending offsets: offsets in a transaction, which count only if the transaction is committed (KIP-98).

If two transactions commit offsets for one partition, the offset that is later in the log counts, in whatever
order the transactions end. So the offsets of a partition are kept in the order of the log. If a later one
overtakes an offset, that offset loses its value but keeps its place: the partition stays unstable until its
transaction ends as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from schemas.internal_topics.group_metadata_log import OffsetCommitKey, OffsetCommitValue

Partition = tuple[str, int]
"""A topic's name and a partition's index."""


class CommittedOffset(NamedTuple):
    """One offset of a transaction that has been committed."""

    group_id: str
    partition: Partition
    value: OffsetCommitValue


class PendingOffsets:
    """The offsets of all open transactions of a shard."""

    __slots__ = ("_commits", "_transactions")

    def __init__(self) -> None:
        self._commits: dict[str, dict[Partition, dict[int, OffsetCommitValue | None]]] = {}
        """Values by group, partition and producer id; the producer ids are in the order of the log. None: the
        offset is overtaken.
        """
        self._transactions: dict[int, dict[tuple[str, Partition], None]] = {}
        """By producer id: the groups and partitions for which its transaction has offsets."""

    def __bool__(self) -> bool:
        return bool(self._transactions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PendingOffsets) and self._commits == other._commits

    __hash__ = None  # type: ignore[assignment]

    def of_group(self, group_id: str) -> Collection[Partition]:
        """The partitions for which a group has a pending offset."""
        return self._commits.get(group_id, {}).keys()

    def values(self, group_id: str, partition: Partition) -> Iterator[OffsetCommitValue]:
        """The pending offsets of a partition that are not overtaken."""
        commits = self._commits.get(group_id, {}).get(partition, {})
        return (value for value in commits.values() if value is not None)

    def group_ids(self) -> Collection[str]:
        """The groups that have a pending offset."""
        return self._commits.keys()

    def add(self, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
        """Add an offset of a producer's transaction, in place of its earlier one for the partition."""
        partition = (key.topic, key.partition)
        commits = self._commits.setdefault(key.group, {}).setdefault(partition, {})
        commits.pop(producer_id, None)
        commits[producer_id] = value
        self._transactions.setdefault(producer_id, {})[key.group, partition] = None

    def overtake(self, key: OffsetCommitKey) -> None:
        """Void the pending offsets of a partition, because an offset that counts at once follows them."""
        commits = self._commits.get(key.group, {}).get((key.topic, key.partition), {})
        for producer_id in commits:
            commits[producer_id] = None

    def forget(self, key: OffsetCommitKey) -> None:
        """Drop the pending offsets of a partition, because its offset was deleted."""
        partition = (key.topic, key.partition)
        for producer_id in tuple(self._commits.get(key.group, {}).get(partition, ())):
            self._remove(producer_id, key.group, partition)
            transaction = self._transactions[producer_id]
            del transaction[key.group, partition]
            if not transaction:
                del self._transactions[producer_id]

    def end(self, producer_id: int, *, committed: bool) -> Iterator[CommittedOffset]:
        """End a producer's transaction; yield its offsets that count from now on. Read it to the end."""
        for group_id, partition in self._transactions.pop(producer_id, ()):
            value = self._remove(producer_id, group_id, partition, overtakes=committed)
            if committed and value is not None:
                yield CommittedOffset(group_id, partition, value)

    def _remove(
        self, producer_id: int, group_id: str, partition: Partition, *, overtakes: bool = False
    ) -> OffsetCommitValue | None:
        """Remove one pending offset and return its value. overtakes: it counts from now on, so it voids those
        before it in the log.
        """
        of_group = self._commits[group_id]
        commits = of_group[partition]
        if overtakes and commits[producer_id] is not None:
            for earlier in commits:
                if earlier == producer_id:
                    break
                commits[earlier] = None
        value = commits.pop(producer_id)
        if not commits:
            del of_group[partition]
        if not of_group:
            del self._commits[group_id]
        return value
