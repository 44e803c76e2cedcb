"""Collects records into batches, one for each partition: which partition, how many bytes, in which order."""

from __future__ import annotations

from random import Random
from typing import Final

from kshim.client.partitioner import partition_for
from kshim.client.record import NewRecord

BATCH_BYTES: Final = 512 * 1024
"""Most bytes of a batch of several records: half the default of max.message.bytes."""
ALL_BYTES: Final = 4 * 1024 * 1024
"""Most bytes of all batches."""
RECORD_BYTES: Final = 32
HEADER_BYTES: Final = 10
"""Bytes that a record and a header take at most, beside their texts."""


class NoPartition(Exception):
    """A record names a partition that the topic does not have. str() says so."""


class Batches:
    """The records that wait to be sent.

    As Kafka's clients do, a record without a key and a partition goes to the partition of the record before
    it, until that one's batch has been taken: one large batch is cheaper than many small ones.
    """

    def __init__(self, topic: str, partitions: int, random: Random) -> None:
        self._topic = topic
        self._partitions = partitions
        self._random = random
        self._waiting: dict[int, list[NewRecord]] = {}
        self._bytes: dict[int, int] = {}
        self._all_bytes = 0
        self._sticky = random.randrange(partitions)

    def add(self, record: NewRecord) -> bool:
        """Add a record. Return False, and do not add it, if the batches must be taken first. Raises
        NoPartition.
        """
        partition, size = self._partition(record), size_of(record)
        waiting_bytes = self._bytes.get(partition, 0)
        is_full = waiting_bytes and waiting_bytes + size > BATCH_BYTES
        if is_full or (self._all_bytes and self._all_bytes + size > ALL_BYTES):
            return False
        self._waiting.setdefault(partition, []).append(record)
        self._bytes[partition] = waiting_bytes + size
        self._all_bytes += size
        return True

    def take(self) -> dict[int, list[NewRecord]]:
        """Return the waiting records by partition, and forget them."""
        taken, self._waiting, self._bytes, self._all_bytes = self._waiting, {}, {}, 0
        if self._sticky in taken:
            self._sticky = self._random.randrange(self._partitions)
        return taken

    def _partition(self, record: NewRecord) -> int:
        if record.partition is not None:
            if not 0 <= record.partition < self._partitions:
                has = f"{self._topic} has the partitions 0 to {self._partitions - 1}"
                raise NoPartition(f"partition {record.partition}: {has}")
            return record.partition
        return self._sticky if record.key is None else partition_for(record.key, self._partitions)


def size_of(record: NewRecord) -> int:
    """About how many bytes a record takes in a batch."""
    size = RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += HEADER_BYTES + len(name.encode()) + len(value or b"")
    return size
