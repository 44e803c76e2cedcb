"""Idempotent producers: which batch of a producer is new, which was here before, and which comes too early.

Pure: the state of one partition, and the rules of KIP-98 and KIP-360. A producer numbers the records it sends
to a partition; the last five batches of each producer are remembered, because a client has at most five on
their way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from schemas.error_code import ErrorCode
from schemas.record_batch import RecordBatchHeader

REMEMBERED_BATCHES = 5
MAX_PRODUCERS = 5000  # of one partition; beyond, the one that has been silent for longest is forgotten
_SEQUENCES = 1 << 31  # the number after 2**31 - 1 is 0


class SentBatch(NamedTuple):
    """A batch that was accepted. timestamp_ms: its largest."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Producer:
    """One producer in one partition. batches: the last five of this epoch, oldest first; never none."""

    producer_epoch: int
    batches: tuple[SentBatch, ...]


class PartitionProducers:
    """The producers of one partition, by producer id."""

    def __init__(self) -> None:
        self._producers: dict[int, Producer] = {}  # in the order of their last batches

    def check(self, header: RecordBatchHeader) -> SentBatch | ErrorCode:
        """What a batch is: one that was here before, or NONE for a new one, or the error that refuses it.

        The first batch of an unknown producer is new, whatever its sequence: it may have been forgotten.
        """
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return ErrorCode.NONE
        if header.producer_epoch < producer.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if header.producer_epoch > producer.producer_epoch:
            return ErrorCode.NONE if header.base_sequence == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        for sent in producer.batches:
            if sent.base_sequence == header.base_sequence and sent.last_sequence == header.last_sequence:
                return sent
        follows = (producer.batches[-1].last_sequence + 1) % _SEQUENCES
        return ErrorCode.NONE if header.base_sequence == follows else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def accept(self, header: RecordBatchHeader, base_offset: int, timestamp_ms: int) -> None:
        """Remember a batch that `check` called new, or that the log holds."""
        producer = self._producers.pop(header.producer_id, None)
        sent = SentBatch(header.base_sequence, header.last_sequence, base_offset, timestamp_ms)
        known = producer.batches if producer and producer.producer_epoch == header.producer_epoch else ()
        self._producers[header.producer_id] = Producer(
            header.producer_epoch, (*known, sent)[-REMEMBERED_BATCHES:]
        )
        if len(self._producers) > MAX_PRODUCERS:
            del self._producers[next(iter(self._producers))]


def replay(headers: Iterable[RecordBatchHeader]) -> PartitionProducers:
    """The producers as the batches of a log leave them; oldest first."""
    producers = PartitionProducers()
    for header in headers:
        if header.producer_id >= 0 and header.base_sequence >= 0:
            producers.accept(header, header.base_offset, header.max_timestamp)
    return producers
