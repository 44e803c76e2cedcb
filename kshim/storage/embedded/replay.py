"""Turns what the write-ahead log holds into writes again, with what LMDB has before them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kshim.storage import chunk
from kshim.storage.embedded.logged import Logged, LoggedAppend
from kshim.storage.embedded.producers import load_producers
from kshim.storage.embedded.rows import SO_FAR
from kshim.storage.embedded.writes import Append, Delete, Forget, Write, last_chunk_key
from kshim.storage.interfaces import Appended
from schemas.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from kshim.storage.embedded.environment import Environment


class _End:
    """The end of a partition: its largest timestamp so far, and its producers."""

    def __init__(self, environment: Environment, partition_no: int) -> None:
        with environment.read("log") as transaction:
            key = last_chunk_key(transaction, partition_no)
            value = b"" if key is None else transaction.get(key, b"")
            self.max_timestamp = SO_FAR.unpack_from(value)[0] if value else NO_TIMESTAMP
            self.producers = load_producers(environment, transaction, partition_no)


def replayed(environment: Environment, logged: Iterable[Logged], deleted: Iterable[int]) -> list[Write]:
    """Make the writes that were logged. deleted: partitions that were deleted before; their records go."""
    ends: dict[int, _End] = {}
    gone = set(deleted)
    writes: list[Write] = []
    for each in logged:
        if isinstance(each, LoggedAppend | Forget):
            if each.partition_no in gone:
                continue
            end = ends.get(each.partition_no)
            if end is None:
                end = ends[each.partition_no] = _End(environment, each.partition_no)
            if isinstance(each, LoggedAppend):
                writes.append(_append(each, end))
            else:
                end.producers.drop(each.producer_ids)
                writes.append(each)
            continue
        if isinstance(each, Delete):
            gone.add(each.partition_no)
        writes.append(each)
    return writes


def _append(logged: LoggedAppend, end: _End) -> Append:
    placed = chunk.placed(logged.batches)
    end.max_timestamp = max(end.max_timestamp, placed.max_timestamp)
    return Append(
        partition_no=logged.partition_no,
        last_offset=placed.next_offset - 1,
        max_timestamp_so_far=end.max_timestamp,
        batches=logged.batches,
        changes=end.producers.replay(placed.produced),
        result=Appended(int.from_bytes(logged.batches[:8]), 0, NO_TIMESTAMP),
        seq=logged.seq,
    )
