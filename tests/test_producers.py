"""The rules for idempotent producers, without a log. The facts are Apache Kafka 4.2's answers to these
sequences.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.producers import MAX_PRODUCERS, PartitionProducers, SentBatch, replay
from schemas.error_code import ErrorCode
from schemas.record_batch import Record, RecordBatchHeader, decode_header, encode

NEW = ErrorCode.NONE
TOO_EARLY = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
STALE = ErrorCode.INVALID_PRODUCER_EPOCH
LAST = 2**31 - 1


def header(
    sequence: int, count: int = 1, epoch: int = 0, producer_id: int = 7, at: int = 0
) -> RecordBatchHeader:
    records = [Record(at + i, 1000, None, b"v") for i in range(count)]
    return decode_header(
        encode(
            records,
            base_offset=at,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
    )


class Partition:
    """Producers, and the log end offset that goes with them."""

    def __init__(self) -> None:
        self.producers = PartitionProducers()
        self.end = 0

    def send(self, sequence: int, count: int = 1, epoch: int = 0, producer_id: int = 7) -> int | ErrorCode:
        """The base offset of a batch, new or old, or the error."""
        sent = header(sequence, count, epoch, producer_id)
        found = self.producers.check(sent)
        if isinstance(found, SentBatch):
            return found.base_offset
        if found is not NEW:
            return found
        self.producers.accept(sent, self.end, sent.max_timestamp)
        self.end += count
        return self.end - count


@pytest.fixture
def partition() -> Partition:
    return Partition()


def test_one_after_the_other(partition: Partition) -> None:
    assert [partition.send(0), partition.send(1, 3), partition.send(4)] == [0, 1, 4]


def test_the_first_batch_of_an_unknown_producer_may_have_any_sequence_and_epoch(partition: Partition) -> None:
    assert partition.send(7, epoch=5) == 0
    assert partition.send(8, epoch=5) == 1


def test_a_gap_is_refused(partition: Partition) -> None:
    partition.send(0)
    assert partition.send(2) is TOO_EARLY


def test_a_repetition_must_be_the_same_batch(partition: Partition) -> None:
    partition.send(0)
    partition.send(1, 3)
    assert partition.send(1, 3) == 1
    assert partition.send(1, 4) is TOO_EARLY
    assert partition.send(1, 2) is TOO_EARLY
    assert partition.send(2, 2) is TOO_EARLY


def test_the_last_five_batches_are_known_and_no_older_one(partition: Partition) -> None:
    for sequence in range(6):
        partition.send(sequence)
    assert [partition.send(sequence) for sequence in range(1, 6)] == [1, 2, 3, 4, 5]
    assert partition.send(0) is TOO_EARLY


def test_a_new_epoch_begins_with_sequence_0(partition: Partition) -> None:
    partition.send(0)
    assert partition.send(1, epoch=1) is TOO_EARLY
    assert partition.send(0, epoch=1) == 1
    assert partition.send(1, epoch=0) is STALE
    assert partition.send(0, epoch=0) is STALE
    assert partition.send(0, epoch=3) == 2


@pytest.mark.parametrize("count", [1, 4])
def test_sequences_wrap(partition: Partition, count: int) -> None:
    assert partition.send(LAST - count // 2, count) == 0
    follows = (LAST - count // 2 + count) % (LAST + 1)
    assert partition.send(follows) == count
    assert partition.send(LAST - count // 2, count) == 0


def test_producers_do_not_know_of_each_other(partition: Partition) -> None:
    assert [partition.send(0, producer_id=1), partition.send(0, producer_id=2)] == [0, 1]
    assert partition.send(2, producer_id=1) is TOO_EARLY


def test_the_producer_that_was_silent_for_longest_is_forgotten(partition: Partition) -> None:
    for producer_id in range(MAX_PRODUCERS):
        partition.send(0, producer_id=producer_id)
    partition.send(1, producer_id=0)
    partition.send(0, producer_id=MAX_PRODUCERS)
    assert partition.send(5, producer_id=0) is TOO_EARLY  # still known
    assert isinstance(partition.send(5, producer_id=1), int)  # not any more
    assert not isinstance(partition.send(5, producer_id=1), ErrorCode)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 9), st.integers(1, 3))))
def test_replaying_the_log_gives_the_state_that_wrote_it(
    sent: list[tuple[int, int, int, int]],
) -> None:
    """Whatever is sent: what a log of the accepted batches remembers answers every batch as before."""
    partition, log = Partition(), []
    for producer_id, epoch, sequence, count in sent:
        before = partition.end
        partition.send(sequence, count, epoch, producer_id)
        if partition.end > before:
            log.append(header(sequence, count, epoch, producer_id, at=before))
    again = replay(log)
    for producer_id in range(3):
        for epoch in range(4):
            for sequence in range(12):
                asked = header(sequence, 1, epoch, producer_id)
                assert again.check(asked) == partition.producers.check(asked)


def test_batches_of_other_producers_are_not_replayed() -> None:
    plain = decode_header(encode([Record(0, 1, None, b"v")]))
    assert replay([plain]).check(header(5)) is NEW
