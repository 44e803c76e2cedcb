"""Produces records, and reads records as a consumer would get them.

Records with a key go to the partition that the Java client's partitioner would choose.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from kshim.client.fetched import FetchedPartition
from kshim.client.partitioner import partition_for
from kshim.client.record import Consumed
from kshim.testing.brokers import Again, Brokers, TopicMetadata, check
from kshim.testing.new_records import NewRecord, as_bytes
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from schemas.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from schemas.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from schemas.records import batch
from schemas.records.compression import Compression

__all__ = [
    "Consumed",
    "Position",
    "end_offsets",
    "fetch",
    "produce",
    "start_offsets",
]

EARLIEST, LATEST = -2, -1
ACKS_OF_ALL = -1
FETCH_BYTES = 8 * 1024 * 1024
LONGEST_FETCH_MS = 500
REQUEST_TIMEOUT_MS = 30_000


class Position(NamedTuple):
    """The partition and offset of a produced record."""

    partition: int
    offset: int


# ---- producing


def produce(
    brokers: Brokers, topic: str, records: Sequence[NewRecord], compression: Compression
) -> list[Position]:
    """Append records, with one batch for each partition, acknowledged by all replicas. Return their
    positions.

    Creates a missing topic if the broker does that for producers. Raises Refused, TimeoutError.
    """
    found = brokers.deadline.until_done(lambda: brokers.topic(topic, create=True))
    chosen = [_partition(record, number, len(found.leaders)) for number, record in enumerate(records)]
    positions: dict[int, Iterator[int]] = {}
    for partition in sorted(set(chosen)):
        mine = [record for record, at in zip(records, chosen, strict=True) if at == partition]
        data = _batch(mine, compression)
        base = brokers.deadline.until_done(partial(_append, brokers, topic, partition, data))
        positions[partition] = iter(range(base, base + len(mine)))
    return [Position(partition, next(positions[partition])) for partition in chosen]


def _partition(record: NewRecord, number: int, partitions: int) -> int:
    """Return the record's own partition, else the one of its key; without a key, each partition in turn."""
    if record.partition is not None:
        return record.partition
    key = as_bytes(record.key)
    return number % partitions if key is None else partition_for(key, partitions)


def _batch(records: Sequence[NewRecord], compression: Compression) -> bytes:
    now_ms = int(time.time() * 1000)
    return batch.encode(
        (
            batch.Record(
                offset,
                now_ms if record.timestamp_ms is None else record.timestamp_ms,
                as_bytes(record.key),
                as_bytes(record.value),
                record.header_pairs,
            )
            for offset, record in enumerate(records)
        ),
        compression=compression,
    )


def _append(brokers: Brokers, topic: str, partition: int, data: bytes) -> int:
    """Append a batch, and return the offset of its first record. Raises Again, Refused, OSError."""
    response = brokers.ask_node(
        _leader(brokers.topic(topic), partition),
        ProduceRequest(
            acks=ACKS_OF_ALL,
            timeout_ms=REQUEST_TIMEOUT_MS,
            topic_data=(
                TopicProduceData(
                    name=topic, partition_data=(PartitionProduceData(index=partition, records=data),)
                ),
            ),
        ),
        ProduceResponse,
    )
    ((done,),) = (answered.partition_responses for answered in response.responses)
    check(f"produce to {topic}-{partition}", done.error_code, done.error_message)
    return done.base_offset


def _leader(topic: TopicMetadata, partition: int) -> int:
    if partition not in topic.leaders:
        raise Again(f"topic {topic.name} has no partition {partition}, only 0 to {len(topic.leaders) - 1}")
    return topic.leaders[partition]


# ---- reading


def start_offsets(brokers: Brokers, topic: TopicMetadata) -> dict[int, int]:
    """The first offset of each partition. Raises Again, Refused, OSError."""
    return _offsets(brokers, topic, EARLIEST)


def end_offsets(brokers: Brokers, topic: TopicMetadata) -> dict[int, int]:
    """The offset that the next record of each partition gets. Raises Again, Refused, OSError."""
    return _offsets(brokers, topic, LATEST)


def _offsets(brokers: Brokers, topic: TopicMetadata, timestamp: int) -> dict[int, int]:
    offsets = {}
    for leader, partitions in _by_leader(topic, topic.leaders).items():
        asked = tuple(ListOffsetsPartition(partition_index=p, timestamp=timestamp) for p in partitions)
        wanted = ListOffsetsTopic(name=topic.name, partitions=asked)
        request = ListOffsetsRequest(replica_id=-1, topics=(wanted,))
        response = brokers.ask_node(leader, request, ListOffsetsResponse)
        for answered in response.topics[0].partitions:
            check(f"offsets of {topic.name}-{answered.partition_index}", answered.error_code)
            offsets[answered.partition_index] = answered.offset
    return offsets


def _by_leader(topic: TopicMetadata, partitions: Iterable[int]) -> dict[int, list[int]]:
    led: dict[int, list[int]] = {}
    for partition in partitions:
        led.setdefault(_leader(topic, partition), []).append(partition)
    return led


def fetch(
    brokers: Brokers,
    topic: TopicMetadata,
    positions: dict[int, int],
    into: list[Consumed],
    *,
    committed_only: bool,
) -> None:
    """Read each partition from its position on, add the records to `into`, and move the positions behind
    them.

    Waits a little if there are no records. Raises Again, Refused, OSError, perhaps after adding some records.
    """
    led = _by_leader(topic, positions)
    longest_ms = min(brokers.deadline.left_s * 1000, LONGEST_FETCH_MS) / len(led)
    before = len(into)
    for leader, partitions in led.items():
        asked = tuple(
            FetchPartition(partition=p, fetch_offset=positions[p], partition_max_bytes=FETCH_BYTES)
            for p in partitions
        )
        request = FetchRequest(
            max_wait_ms=0 if len(into) > before else int(longest_ms),
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=int(committed_only),
            topics=(FetchTopic(topic=topic.name, partitions=asked),),
        )
        response = brokers.ask_node(leader, request, FetchResponse)
        check(f"fetch from {topic.name}", response.error_code)
        for answered in response.responses[0].partitions:
            check(f"fetch from {topic.name}-{answered.partition_index}", answered.error_code)
            fetched = FetchedPartition(topic.name, answered, positions[answered.partition_index])
            into += fetched
            positions[answered.partition_index] = fetched.position


class Reading:
    """Reads a topic, or one of its partitions, from an offset on. offset: None for the first one."""

    def __init__(
        self, brokers: Brokers, topic: str, partition: int | None, offset: int | None, committed_only: bool
    ) -> None:
        """Wait until the topic exists. Raises Refused, TimeoutError."""
        self._brokers, self._topic, self._committed_only = brokers, topic, committed_only
        found = brokers.deadline.until_done(lambda: brokers.topic(topic))
        mine = found.leaders if partition is None else [partition]
        if offset is None:
            starts = brokers.deadline.until_done(lambda: start_offsets(brokers, found))
        self._positions = {at: starts[at] if offset is None else offset for at in mine}
        self._read: list[Consumed] = []

    def all(self) -> list[Consumed]:
        """Return all records that exist now. Raises Refused, TimeoutError."""
        deadline = self._brokers.deadline
        ends = deadline.until_done(lambda: end_offsets(self._brokers, self._brokers.topic(self._topic)))
        while any(position < ends[at] for at, position in self._positions.items()):
            deadline.until_done(self._fetch)
        return sorted(record for record in self._read if record.offset < ends[record.partition])

    def first(self, n: int) -> list[Consumed]:
        """Wait until there are `n` records, and return the first `n`. Raises Refused, TimeoutError."""
        deadline = self._brokers.deadline
        while len(self._read) < n:
            if deadline.is_over:
                raise TimeoutError(self._too_few(n))
            deadline.until_done(self._fetch)
        return sorted(self._read)[:n]

    def _fetch(self) -> None:
        topic = self._brokers.topic(self._topic)
        fetch(self._brokers, topic, self._positions, self._read, committed_only=self._committed_only)

    def _too_few(self, n: int) -> str:
        had = Counter(record.partition for record in self._read)
        at = ", ".join(f"{had[partition]} in partition {partition}" for partition in sorted(self._positions))
        return (
            f"topic {self._topic}: waited {self._brokers.deadline.timeout_s:g} s for {n} record(s), "
            f"but read {len(self._read)}: {at}"
        )
