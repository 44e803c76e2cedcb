"""The rules for idempotent producers, without a store. The facts are Apache Kafka 4.2's answers."""

from __future__ import annotations

import pytest

from kshim.producing.rules import Verification, check, check_marker, in_transaction
from kshim.storage.producers import NO_TRANSACTION, Produced, Producers, ProducerState, SentBatch
from schemas.error_code import ErrorCode
from schemas.records.batch import Record, RecordBatchHeader, decode_header, encode
from schemas.records.end_txn_marker import EndTxnMarker, encode_marker

NEW = ErrorCode.NONE
TOO_EARLY = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
STALE = ErrorCode.INVALID_PRODUCER_EPOCH
NOT_IN_IT = ErrorCode.INVALID_TXN_STATE
FENCED = ErrorCode.TRANSACTION_COORDINATOR_FENCED
LAST = 2**31 - 1


def header(
    sequence: int, count: int = 1, epoch: int = 0, producer_id: int = 7, is_transactional: bool = False
) -> RecordBatchHeader:
    return decode_header(
        encode(
            [Record(i, 1000, None, b"v") for i in range(count)],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
    )


class Partition:
    """The producers of a partition, and its log end offset."""

    def __init__(self) -> None:
        self.producers = Producers()
        self.end = 0

    def send(
        self,
        sequence: int,
        count: int = 1,
        epoch: int = 0,
        producer_id: int = 7,
        in_transaction: bool = False,
    ) -> int | ErrorCode:
        """The base offset of a batch, new or repeated, or the error; the coordinator allows every batch."""
        sent = header(sequence, count, epoch, producer_id, in_transaction)
        found = check(self.producers.get(producer_id), sent)
        if isinstance(found, SentBatch):
            return found.base_offset
        if found is not NEW:
            return found
        self.producers.replay([Produced(sent, self.end, sent.max_timestamp, None)])
        self.end += count
        return self.end - count

    def mark(self, epoch: int = 0, coordinator_epoch: int = 0, transaction_version: int = 0) -> ErrorCode:
        marker = EndTxnMarker(7, epoch, False, coordinator_epoch, 1000)
        fault = check_marker(self.producers.get(7), marker, transaction_version)
        if fault is NEW:
            self.producers.replay([Produced(decode_header(encode_marker(marker)), self.end, 1000, marker)])
            self.end += 1
        return fault


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


# ---- transactions


def test_a_producer_in_a_transaction_sends_nothing_outside_of_it(partition: Partition) -> None:
    assert partition.send(0, in_transaction=True) == 0
    assert partition.send(1) is NOT_IN_IT
    assert partition.send(5) is TOO_EARLY
    assert partition.send(1, in_transaction=True) == 1
    assert partition.mark() is NEW
    assert partition.send(2) == 3


def test_a_marker_leaves_the_sequences_unless_it_has_a_later_epoch(partition: Partition) -> None:
    partition.send(0, in_transaction=True)
    partition.mark()
    assert partition.send(0, in_transaction=True) == 0  # repeated
    assert partition.send(0, 2, in_transaction=True) is TOO_EARLY
    assert partition.send(1, in_transaction=True) == 2
    assert partition.mark(epoch=1) is NEW
    assert partition.send(2, in_transaction=True) is STALE
    assert partition.send(1, in_transaction=True) is STALE
    assert partition.send(1, epoch=1, in_transaction=True) is TOO_EARLY
    assert partition.send(0, epoch=1, in_transaction=True) == 4


def test_a_marker_of_an_earlier_epoch_or_coordinator_is_refused(partition: Partition) -> None:
    assert partition.mark(epoch=1, coordinator_epoch=4) is NEW
    assert partition.mark(epoch=0, coordinator_epoch=4) is STALE
    assert partition.mark(epoch=0, coordinator_epoch=3) is STALE
    assert partition.mark(epoch=1, coordinator_epoch=3) is FENCED
    assert partition.mark(epoch=1, coordinator_epoch=4) is NEW
    assert partition.mark(epoch=2, coordinator_epoch=5) is NEW


@pytest.mark.parametrize(
    ("producer_id", "epoch", "coordinator_epoch", "error"),
    [
        (8, 0, -1, ErrorCode.NONE),
        (8, -2, 0, ErrorCode.INVALID_PRODUCER_EPOCH),
        (8, 0, -2, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (-2, -2, -2, ErrorCode.NONE),
    ],
)
def test_a_marker_of_a_producer_that_is_not_known(
    producer_id: int, epoch: int, coordinator_epoch: int, error: ErrorCode
) -> None:
    marker = EndTxnMarker(producer_id, epoch, False, coordinator_epoch, 1000)
    assert check_marker(None, marker) is error


def test_from_version_2_on_a_marker_has_a_later_epoch_than_the_records(partition: Partition) -> None:
    partition.send(0, in_transaction=True)
    assert partition.mark(epoch=0, transaction_version=2) is STALE
    assert partition.mark(epoch=1, transaction_version=2) is NEW
    assert partition.mark(epoch=1, transaction_version=2) is NEW  # once more
    partition.send(0, epoch=1, in_transaction=True)
    assert partition.mark(epoch=1, transaction_version=2) is STALE
    assert partition.mark(epoch=1, transaction_version=1) is NEW


def test_a_transaction_is_open_in_its_epoch(partition: Partition) -> None:
    assert not in_transaction(partition.producers.get(7), 0)
    partition.send(0, epoch=1, in_transaction=True)
    known = partition.producers.get(7)
    assert [in_transaction(known, epoch) for epoch in (0, 1, 2)] == [False, True, False]
    partition.mark(epoch=1)
    assert not in_transaction(partition.producers.get(7), 1)


def test_the_first_batch_of_a_transaction_must_be_verified() -> None:
    first, outside = header(0, is_transactional=True), header(0)
    asked = Verification(0, 0, False, 0)
    assert check(None, first, asked, is_verified=False) is NOT_IN_IT
    assert check(None, first, asked, is_verified=True) is NEW
    assert check(None, outside, None, is_verified=False) is NEW
    opened = ProducerState(0, -1, 0, 5, (SentBatch(0, 0, 5, 0),))
    assert check(opened, header(1, is_transactional=True), is_verified=False) is NEW
    assert check(opened, header(0, epoch=1, is_transactional=True), is_verified=False) is NOT_IN_IT
    later = ProducerState(1, 0, 0, NO_TRANSACTION, ())
    assert check(later, first, asked, is_verified=False) is STALE


def test_what_was_asked_for_first_comes_first() -> None:
    asked = Verification(0, 3, False, 0)
    assert check(None, header(5, is_transactional=True), asked) is TOO_EARLY
    assert check(None, header(3, is_transactional=True), asked) is NEW
    asked.ask_again(header(1))
    asked.ask_again(header(2))
    assert check(None, header(3, is_transactional=True), asked) is TOO_EARLY
    asked.ask_again(header(9, epoch=1))
    asked.ask_again(header(0))
    assert (asked.producer_epoch, asked.lowest_sequence) == (1, 9)


def test_a_producer_that_lets_the_broker_add_partitions_begins_with_sequence_0() -> None:
    asked = Verification(2, 4, True, 0)
    begun = ProducerState(2, -1, 0, NO_TRANSACTION, (SentBatch(3, 3, 0, 0),))
    assert check(None, header(4, epoch=2, is_transactional=True), asked) is TOO_EARLY
    assert check(begun, header(4, epoch=2, is_transactional=True), asked) is NEW
    asked = Verification(2, 0, True, 0)
    assert check(None, header(0, epoch=2, is_transactional=True), asked) is NEW


def test_a_producer_without_an_epoch_may_send_any_sequence(partition: Partition) -> None:
    assert partition.send(5, epoch=-1) == 0
    assert partition.send(9, epoch=-1) == 1
    assert partition.send(3, epoch=0) == 2
