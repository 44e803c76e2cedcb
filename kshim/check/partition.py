"""Checks one partition: every batch, and the stored producers and aborted transactions against the batches.

Chunks are checked one after the other. A fault names its offset; the rest of its chunk is still checked where
that is possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from kshim.check.faults import Fault
from kshim.check.journals import JOURNALS, Journal, fault_in_record
from kshim.storage.producers import Aborted, Produced, Producers, ProducerState
from schemas.records.batch import (
    HEADER_BYTES,
    NO_TIMESTAMP,
    CorruptRecordBatch,
    RecordBatchHeader,
    batches,
    crc32c,
    decode_header,
    records,
)
from schemas.records.end_txn_marker import decode_marker

MAX_FAULTS = 20
MAGIC = 2
CRC_FROM = 21


class Checked(NamedTuple):
    """A partition, and what was found in it."""

    topic: str
    partition: int
    end: int
    """The offset after its last batch."""
    records: int
    batches: int
    bytes: int
    faults: tuple[Fault, ...]


@dataclass(slots=True, kw_only=True)
class PartitionCheck:
    """The check of one partition: call chunk() for each chunk in order, then finish()."""

    topic: str
    index: int
    start: int
    """The log start offset."""
    compacted: bool
    """True if offsets may be missing, because compaction has removed records."""
    end: int = 0
    records: int = 0
    batches: int = 0
    bytes: int = 0
    faults: list[Fault] = field(default_factory=list)
    _leader_epoch: int = -1
    _max_timestamp: int = NO_TIMESTAMP
    _producers: Producers = field(default_factory=Producers)
    _aborted: list[Aborted] = field(default_factory=list)
    _from_the_beginning: bool = True
    _journal: Journal | None = None

    def __post_init__(self) -> None:
        if self.topic in JOURNALS:
            self._journal = JOURNALS[self.topic]()

    def chunk(self, last_offset: int, max_timestamp_so_far: int, data: memoryview) -> None:
        """Check the next stored chunk."""
        if not self.batches:
            self._begin(data)
        size, largest = 0, NO_TIMESTAMP
        try:
            for batch in batches(data):
                header = decode_header(batch)
                self._batch(header, batch)
                size += header.size
                if header.records_count:
                    largest = max(largest, header.max_timestamp)
        except CorruptRecordBatch as error:
            self._fault(self.end, f"not a record batch: {error}")
        else:
            if size != len(data):
                self._fault(self.end, f"{len(data) - size} bytes are not a whole record batch")
            elif self.end != last_offset + 1:
                self._fault(self.end - 1, f"the chunk ends here, but should end at {last_offset}")
        self.end = last_offset + 1
        self.bytes += len(data)
        if max_timestamp_so_far < max(largest, self._max_timestamp):
            self._fault(last_offset, "an earlier timestamp is larger than the index says")
        self._max_timestamp = max(self._max_timestamp, max_timestamp_so_far)

    def _begin(self, data: memoryview) -> None:
        """Check where the first chunk begins.

        It may be after the log start offset only in a compacted topic.
        """
        first = int.from_bytes(data[:8])
        self._from_the_beginning = first == 0 and not self.compacted
        if first > self.start and not self.compacted:
            self._fault(self.start, f"no records up to {first}")
        self.end = first

    def _batch(self, header: RecordBatchHeader, batch: memoryview) -> None:
        offset = header.base_offset
        if offset < self.end:
            self._fault(offset, f"begins before {self.end}, where the batch before it ends")
        elif offset > self.end and not self.compacted:
            self._fault(self.end, f"no records up to {offset}")
        self.end = header.next_offset
        self.batches += 1
        self.records += header.records_count
        if header.magic != MAGIC:
            self._fault(offset, f"has magic {header.magic}")
            return
        if header.size < HEADER_BYTES or crc32c(batch[CRC_FROM:]) != header.crc:
            self._fault(offset, "the CRC of the batch does not match")
            return
        if not 0 <= header.records_count <= header.last_offset_delta + 1:
            self._fault(offset, f"says it has {header.records_count} records")
        if header.partition_leader_epoch < self._leader_epoch:
            self._fault(offset, f"has leader epoch {header.partition_leader_epoch}, after a later one")
        self._leader_epoch = max(self._leader_epoch, header.partition_leader_epoch)
        if header.producer_id >= 0:
            marker = decode_marker(batch) if header.is_control else None
            produced = Produced(header, offset, header.max_timestamp, marker)
            self._aborted += self._producers.replay([produced]).aborted
        if self._journal is not None and not header.is_control:
            self._read(self._journal, offset, batch)

    def _read(self, journal: Journal, offset: int, batch: memoryview) -> None:
        try:
            for record in records(batch):
                if fault := fault_in_record(journal, record):
                    self._fault(record.offset, fault)
        except CorruptRecordBatch as error:
            self._fault(offset, f"its records cannot be decoded: {error}")

    def anew(self) -> PartitionCheck:
        """A check of the same partition that has seen no chunk."""
        return PartitionCheck(topic=self.topic, index=self.index, start=self.start, compacted=self.compacted)

    def is_cut(self, why: str) -> None:
        """Note that no more chunks can be read."""
        at = self.end if self.batches else self.start
        self.faults.append(
            Fault(f"{self.topic}-{self.index} at offset {at}", f"not checked from here on: {why}")
        )

    def finish(self, producers: dict[int, ProducerState] | None, aborted: list[Aborted] | None) -> None:
        """Compare the stored producers and aborted transactions with what the batches say. None: they cannot
        be read.
        """
        if not self.batches:
            self.end = self.start
        elif self.start > self.end:
            self._fault(self.start, f"the log starts here, but ends at {self.end}")
        for what in (*self._producer_faults(producers or {}), *self._journal_faults()):
            self.faults.append(Fault(f"{self.topic}-{self.index}", what))
        if self._from_the_beginning and aborted is not None:
            replayed = [one for one in self._aborted if one.last_offset >= self.start]
            if [one for one in aborted if one.last_offset >= self.start] != replayed:
                self._fault(self.start, "the index of aborted transactions differs from the batches")

    def checked(self) -> Checked:
        """Return what was found so far."""
        sizes = self.records, self.batches, self.bytes
        return Checked(self.topic, self.index, self.end, *sizes, tuple(self.faults))

    def _journal_faults(self) -> Iterator[str]:
        """Yield the faults at the end of the log, if all of it was read."""
        if self._journal is not None and not self.faults:
            yield from islice(self._journal.faults(), MAX_FAULTS)

    def _producer_faults(self, kept: dict[int, ProducerState]) -> Iterator[str]:
        replayed = dict(self._producers.items())
        for producer_id, producer in kept.items():
            last = producer.batches[-1].base_offset if producer.batches else -1
            if max(last, producer.transaction_start) >= self.end:
                yield f"producer {producer_id} has a batch at {last}, but the log ends at {self.end}"
            elif self._from_the_beginning and not _same(producer, replayed.get(producer_id)):
                yield f"the state of producer {producer_id} differs from its batches"
        if self._from_the_beginning:
            for producer_id, producer in replayed.items():
                if producer.transaction_start >= 0 and producer_id not in kept:
                    yield f"producer {producer_id} has an open transaction, but no stored state"

    def _fault(self, offset: int, what: str) -> None:
        if len(self.faults) == MAX_FAULTS:
            self.faults.append(Fault(f"{self.topic}-{self.index}", "and more"))
        elif len(self.faults) < MAX_FAULTS:
            self.faults.append(Fault(f"{self.topic}-{self.index} at offset {offset}", what))


def _same(kept: ProducerState, replayed: ProducerState | None) -> bool:
    """True if both states match.

    `kept` has fewer batches if the producer was once forgotten and came back.
    """
    return (
        replayed is not None
        and kept.producer_epoch == replayed.producer_epoch
        and kept.transaction_start == replayed.transaction_start
        and kept.batches == replayed.batches[len(replayed.batches) - len(kept.batches) :]
    )
