"""Walks a data directory once: the metadata, the log chunk by chunk, then producers and transactions."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import NamedTuple

from kshim.check.faults import Fault
from kshim.check.metadata import Known, known_topics
from kshim.check.partition import Checked, PartitionCheck
from kshim.check.stored import Damaged, Stored
from kshim.storage.embedded.rows import ABORTED, CHUNK_KEY, KEY, OFFSET, PARTITION_KEY, SO_FAR
from kshim.storage.producers import Aborted, ProducerState, decode_producer


class Found(NamedTuple):
    """The result of a walk."""

    partitions: tuple[Checked, ...]
    """All partitions of known topics, except those being deleted."""
    faults: tuple[Fault, ...]


def walk(stored: Stored, seen: Callable[[int], object]) -> Found:
    """Check everything that is stored, and call `seen(size in bytes)` after each chunk.

    Raises Damaged if the pages are damaged that say which partitions there are.
    """
    known = known_topics(stored)
    faults = list(known.faults)
    deleted = {PARTITION_KEY.unpack(key)[0] for key, _ in stored.rows("deleted")}
    partitions = _partitions(stored, known, deleted)
    damaged = _log(stored, partitions, deleted, faults, seen)
    producers = _of_partitions(stored, "producers", faults)
    aborted = _of_partitions(stored, "aborted", faults)
    for partition_no, partition in partitions.items():
        if partition_no not in damaged:
            partition.finish(
                None if producers is None else _producers(producers.get(partition_no, ())),
                None if aborted is None else _aborted(aborted.get(partition_no, ())),
            )
        faults += partition.faults
    return Found(tuple(each.checked() for each in partitions.values()), tuple(faults))


def _log(
    stored: Stored,
    partitions: dict[int, PartitionCheck],
    deleted: set[int],
    faults: list[Fault],
    seen: Callable[[int], object],
) -> set[int]:
    """Check all chunks. Return the partitions whose pages are damaged, so that not all chunks were read."""
    reading = 0
    try:
        for key, value in stored.rows("log"):
            partition_no, last_offset = CHUNK_KEY.unpack(key)
            reading = partition_no
            if partition_no in partitions:
                (so_far,) = SO_FAR.unpack_from(value)
                partitions[partition_no].chunk(last_offset, so_far, value[SO_FAR.size :])
            elif partition_no not in deleted:
                faults.append(Fault(f"partition {partition_no}", "has records, but belongs to no topic"))
                deleted.add(partition_no)
            seen(len(value))
    except Damaged:
        return _one_by_one(stored, partitions, reading, seen)
    return set()


def _one_by_one(
    stored: Stored, partitions: dict[int, PartitionCheck], first: int, seen: Callable[[int], object]
) -> set[int]:
    """Check the partitions from number `first` on, each by itself, as a damaged page is in the way. Return
    those whose pages are damaged.
    """
    damaged = set()
    for partition_no in [each for each in partitions if each >= first]:
        check = partitions[partition_no] = partitions[partition_no].anew()
        try:
            for key, value in stored.rows("log", CHUNK_KEY.pack(partition_no, 0)):
                found, last_offset = CHUNK_KEY.unpack(key)
                if found != partition_no:
                    break
                (so_far,) = SO_FAR.unpack_from(value)
                check.chunk(last_offset, so_far, value[SO_FAR.size :])
                seen(len(value))
        except Damaged as error:
            damaged.add(partition_no)
            check.is_cut(str(error))
    return damaged


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


def _of_partitions(
    stored: Stored, database: str, faults: list[Fault]
) -> dict[int, list[tuple[int, bytes]]] | None:
    """The rows of a database by partition_no, each with the number in its key; None if they are damaged."""
    found: dict[int, list[tuple[int, bytes]]] = {}
    try:
        for key, value in stored.rows(database):
            partition_no, number = KEY.unpack(key)
            found.setdefault(partition_no, []).append((number, bytes(value)))
    except Damaged as error:
        faults.append(Fault("the data file", str(error)))
        return None
    return found


def _producers(rows: Iterable[tuple[int, bytes]]) -> dict[int, ProducerState]:
    return {producer_id: decode_producer(value) for producer_id, value in rows}


def _aborted(rows: Iterable[tuple[int, bytes]]) -> list[Aborted]:
    found = []
    for last_offset, value in rows:
        producer_id, first_offset, last_stable_offset = ABORTED.unpack(value)
        found.append(Aborted(producer_id, first_offset, last_offset, last_stable_offset))
    return found
