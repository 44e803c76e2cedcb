"""Walks a data directory once: the metadata, the log chunk by chunk, then producers and transactions."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import NamedTuple

from kshim.check.faults import Fault
from kshim.check.metadata import Known, known_topics
from kshim.check.partition import PartitionCheck
from kshim.check.stored import Stored
from kshim.storage.embedded.rows import ABORTED, CHUNK_KEY, KEY, OFFSET, PARTITION_KEY, SO_FAR
from kshim.storage.interfaces import StorageError
from kshim.storage.producers import Aborted, ProducerState, decode_producer


class Found(NamedTuple):
    """The result of a walk."""

    partitions: tuple[PartitionCheck, ...]
    """All partitions of known topics, except those being deleted."""
    faults: tuple[Fault, ...]


def walk(stored: Stored, seen: Callable[[int], object]) -> Found:
    """Check everything that is stored, and call `seen(size in bytes)` after each chunk."""
    known = known_topics(stored)
    faults = list(known.faults)
    deleted = {PARTITION_KEY.unpack(key)[0] for key, _ in stored.rows("deleted")}
    partitions = _partitions(stored, known, deleted)
    try:
        for key, value in stored.rows("log"):
            partition_no, last_offset = CHUNK_KEY.unpack(key)
            if partition_no in partitions:
                (so_far,) = SO_FAR.unpack_from(value)
                partitions[partition_no].chunk(last_offset, so_far, value[SO_FAR.size :])
            elif partition_no not in deleted:
                faults.append(Fault(f"partition {partition_no}", "has records, but belongs to no topic"))
                deleted.add(partition_no)
            seen(len(value))
        producers, aborted = _beside(stored)
    except StorageError as error:
        faults.append(Fault("the data file", str(error)))
    else:
        for partition_no, partition in partitions.items():
            partition.finish(producers.get(partition_no, {}), aborted.get(partition_no, []))
    for partition in partitions.values():
        faults += partition.faults
    return Found(tuple(partitions.values()), tuple(faults))


def _partitions(stored: Stored, known: Known, deleted: Container[int]) -> dict[int, PartitionCheck]:
    starts = {PARTITION_KEY.unpack(key)[0]: OFFSET.unpack(value)[0] for key, value in stored.rows("starts")}
    compacted = {PARTITION_KEY.unpack(key)[0] for key, _ in stored.rows("compacted")}
    return {
        partition_no: PartitionCheck(
            topic=topic.name,
            index=index,
            start=starts.get(partition_no, 0),
            compacted=partition_no in compacted,
        )
        for partition_no, (topic, index) in sorted(known.partitions.items())
        if partition_no not in deleted
    }


def _beside(stored: Stored) -> tuple[dict[int, dict[int, ProducerState]], dict[int, list[Aborted]]]:
    """The stored producers and aborted transactions, by partition_no."""
    producers: dict[int, dict[int, ProducerState]] = {}
    for key, value in stored.rows("producers"):
        partition_no, producer_id = KEY.unpack(key)
        producers.setdefault(partition_no, {})[producer_id] = decode_producer(value)
    aborted: dict[int, list[Aborted]] = {}
    for key, value in stored.rows("aborted"):
        partition_no, last_offset = KEY.unpack(key)
        producer_id, first_offset, last_stable_offset = ABORTED.unpack(value)
        one = Aborted(producer_id, first_offset, last_offset, last_stable_offset)
        aborted.setdefault(partition_no, []).append(one)
    return producers, aborted
