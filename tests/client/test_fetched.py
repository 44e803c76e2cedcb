"""A partition's answer to Fetch: which of its records a consumer sees."""

from __future__ import annotations

from kshim.client.fetched import FetchedPartition
from schemas.messages.fetch import AbortedTransaction, PartitionData
from schemas.records import batch
from schemas.records.end_txn_marker import EndTxnMarker, encode_marker
from tests.client.answers import data_of


def marker(offset: int, producer_id: int, *, committed: bool) -> bytes:
    return batch.patch(encode_marker(EndTxnMarker(producer_id, 0, committed, 0, 5)), offset, 0)


def read(
    *batches: bytes, wanted: int = 0, aborted: tuple[tuple[int, int], ...] = ()
) -> tuple[list[bytes | None], int]:
    answered = PartitionData(
        partition_index=3,
        records=b"".join(batches),
        aborted_transactions=tuple(
            AbortedTransaction(producer_id=producer_id, first_offset=first) for producer_id, first in aborted
        ),
    )
    fetched = FetchedPartition("orders", answered, wanted)
    return [record.value for record in fetched], fetched.position


def test_records_from_the_wanted_offset_on() -> None:
    assert read(data_of(0, b"a", b"b"), data_of(2, b"c"), wanted=1) == ([b"b", b"c"], 3)


def test_no_records() -> None:
    assert read(wanted=7) == ([], 7)


def test_a_batch_that_is_cut_off_comes_with_the_next_answer() -> None:
    assert read(data_of(0, b"a"), data_of(1, b"b")[:-1]) == ([b"a"], 1)


def test_markers_are_passed_over() -> None:
    batches = data_of(0, b"a", producer_id=7), marker(1, 7, committed=True)
    assert read(*batches) == ([b"a"], 2)


def test_records_of_an_aborted_transaction_are_passed_over() -> None:
    batches = (
        *(data_of(0, b"a", producer_id=7), data_of(1, b"b", producer_id=8), data_of(2, b"plain")),
        *(marker(3, 7, committed=False), data_of(4, b"c", producer_id=7), marker(5, 7, committed=True)),
    )
    assert read(*batches, aborted=((7, 0),)) == ([b"b", b"plain", b"c"], 6)


def test_the_position_follows_each_record_that_was_used() -> None:
    answered = PartitionData(partition_index=0, records=data_of(0, b"a", b"b"))
    fetched = FetchedPartition("orders", answered, 0)
    iterator = iter(fetched)
    next(iterator)
    assert fetched.position == 1
