"""Offsets that transactions have committed and that do not count yet: until the transaction ends, and then
only if it is committed (KIP-98).

Of two commits for a partition the one that is later in the log counts, whenever their transactions end. So
the commits of one partition are kept in the order of the log, and one that a later commit has overtaken is
kept without its value: the partition stays unstable until that transaction ends as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from schemas.internal_topics.group_metadata_log import OffsetCommitKey, OffsetCommitValue

Partition = tuple[str, int]
"""A topic's name and a partition's index."""


class CommittedOffset(NamedTuple):
    """What a transaction that was committed leaves behind."""

    group_id: str
    partition: Partition
    value: OffsetCommitValue


class PendingOffsets:
    """The offsets of all open transactions of a shard, by producer id and by what they are for."""

    __slots__ = ("_commits", "_transactions")

    def __init__(self) -> None:
        self._commits: dict[str, dict[Partition, dict[int, OffsetCommitValue | None]]] = {}
        """By group, partition and producer id, the last of these in the order of the log."""
        self._transactions: dict[int, dict[tuple[str, Partition], None]] = {}
        """By producer id, what it has committed offsets for."""

    def __bool__(self) -> bool:
        return bool(self._transactions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PendingOffsets) and self._commits == other._commits

    __hash__ = None  # type: ignore[assignment]

    def of_group(self, group_id: str) -> Collection[Partition]:
        """The partitions for which a group has an offset that is pending."""
        return self._commits.get(group_id, {}).keys()

    def group_ids(self) -> Collection[str]:
        """The groups that have a pending offset."""
        return self._commits.keys()

    def add(self, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
        """A producer commits an offset in its transaction, in place of one that it had committed there."""
        partition = (key.topic, key.partition)
        commits = self._commits.setdefault(key.group, {}).setdefault(partition, {})
        commits.pop(producer_id, None)
        commits[producer_id] = value
        self._transactions.setdefault(producer_id, {})[key.group, partition] = None

    def overtake(self, key: OffsetCommitKey) -> None:
        """An offset was committed that counts at once: what is pending there will not."""
        commits = self._commits.get(key.group, {}).get((key.topic, key.partition), {})
        for producer_id in commits:
            commits[producer_id] = None

    def forget(self, key: OffsetCommitKey) -> None:
        """The offset was deleted, and what is pending there as well."""
        partition = (key.topic, key.partition)
        for producer_id in tuple(self._commits.get(key.group, {}).get(partition, ())):
            self._remove(producer_id, key.group, partition)
            transaction = self._transactions[producer_id]
            del transaction[key.group, partition]
            if not transaction:
                del self._transactions[producer_id]

    def end(self, producer_id: int, *, committed: bool) -> Iterator[CommittedOffset]:
        """A producer's transaction ends: what counts of it from now on. To be read to its end."""
        for group_id, partition in self._transactions.pop(producer_id, ()):
            value = self._remove(producer_id, group_id, partition, overtakes=committed)
            if committed and value is not None:
                yield CommittedOffset(group_id, partition, value)

    def _remove(
        self, producer_id: int, group_id: str, partition: Partition, *, overtakes: bool = False
    ) -> OffsetCommitValue | None:
        """Take one pending offset out; one that counts from now on overtakes those before it in the log."""
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
