"""Records of a fetched answer that a consumer gets: no markers, none aborted, none before its position."""

from __future__ import annotations

from kshim.testing.records import Consumed, _consumed
from schemas.messages.fetch import AbortedTransaction, PartitionData
from schemas.records import batch
from schemas.records.end_txn_marker import EndTxnMarker, encode_marker

PRODUCER, OTHER = 7, 8


def written(first: int, *values: bytes, producer_id: int = -1) -> bytes:
    """A batch of these values, from the offset `first` on; a transaction's if it names a producer."""
    records = [batch.Record(first + delta, 0, None, value) for delta, value in enumerate(values)]
    transactional = producer_id >= 0
    return batch.encode(
        records, base_offset=first, producer_id=producer_id, is_transactional=transactional, base_sequence=0
    )


def marker(offset: int, producer_id: int, *, committed: bool) -> bytes:
    return batch.patch(encode_marker(EndTxnMarker(producer_id, 0, committed, 0, 0)), offset, 0)


def read(*batches: bytes, position: int = 0, aborted: tuple[AbortedTransaction, ...] = ()) -> list[bytes]:
    """The values that are given; the position is behind the last batch afterwards."""
    positions = {0: position}
    answered = PartitionData(records=b"".join(batches), aborted_transactions=aborted)
    found: list[Consumed] = list(_consumed("t", answered, positions))
    assert positions[0] == batch.decode_header(batches[-1]).next_offset
    return [record.value or b"" for record in found]


def test_records_before_the_position_are_left_out() -> None:
    assert read(written(4, b"a", b"b", b"c"), position=5) == [b"b", b"c"]


def test_markers_are_no_records() -> None:
    data = written(0, b"a", producer_id=PRODUCER), marker(1, PRODUCER, committed=True), written(2, b"b")
    assert read(*data) == [b"a", b"b"]


def test_only_what_the_answer_calls_aborted_is_left_out() -> None:
    data = (
        written(0, b"kept", producer_id=OTHER),
        written(1, b"lost", producer_id=PRODUCER),
        written(2, b"plain"),
        marker(3, PRODUCER, committed=False),
        written(4, b"later", producer_id=PRODUCER),
        marker(5, PRODUCER, committed=True),
        marker(6, OTHER, committed=True),
    )
    aborted = (AbortedTransaction(producer_id=PRODUCER, first_offset=1),)
    assert read(*data, aborted=aborted) == [b"kept", b"plain", b"later"]
    assert read(*data) == [b"kept", b"lost", b"plain", b"later"]
