"""The knowledge about producers, for any batches: it equals a simple list's, and its rows restore it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.storage import producers as known_producers
from kshim.storage.producers import (
    Aborted,
    Produced,
    Producers,
    ProducerState,
    between,
    decode_producer,
    encode_producer,
)
from schemas.records.batch import Record, decode_header, encode
from schemas.records.end_txn_marker import EndTxnMarker, encode_marker

sent = st.tuples(
    st.just("send"), st.integers(0, 3), st.integers(-1, 3), st.integers(0, 2**31 - 1), st.booleans()
)
ended = st.tuples(st.just("end"), st.integers(0, 3), st.integers(0, 3), st.integers(0, 5), st.booleans())
histories = st.lists(sent | ended, max_size=40)
History = list[tuple[str, int, int, int, bool]]


def produced(offset: int, what: tuple[str, int, int, int, bool]) -> Produced:
    kind, producer_id, epoch, number, flag = what
    if kind == "end":
        marker = EndTxnMarker(producer_id, epoch, flag, coordinator_epoch=number, timestamp_ms=offset)
        return Produced(decode_header(encode_marker(marker)), offset, offset, marker)
    batch = encode(
        [Record(0, offset, None, b"v")],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=number,
        is_transactional=flag,
    )
    return Produced(decode_header(batch), offset, offset, None)


def replayed(history: History) -> tuple[Producers, list[Aborted], dict[int, ProducerState]]:
    """The producers, the aborted transactions, and the rows of a store, change by change."""
    producers, aborted, rows = Producers(), [], {}
    for offset, what in enumerate(history):
        changes = producers.replay([produced(offset, what)])
        aborted += changes.aborted
        for producer_id, producer in changes.producers.items():
            assert producer is not None
            rows[producer_id] = decode_producer(encode_producer(producer))
    return producers, aborted, rows


@given(histories)
def test_rows_restore_all_that_is_known(history: History) -> None:
    producers, _, rows = replayed(history)
    loaded = Producers(rows.items())
    assert dict(loaded.items()) == dict(producers.items())
    end = len(history)
    assert loaded.last_stable_offset(end) == producers.last_stable_offset(end)
    for offset, what in enumerate(history, end):
        assert loaded.replay([produced(offset, what)]) == producers.replay([produced(offset, what)])


@given(histories)
def test_batches_at_once_or_one_by_one_give_the_same(history: History) -> None:
    one_by_one, aborted, rows = replayed(history)
    at_once = Producers()
    changes = at_once.replay([produced(offset, what) for offset, what in enumerate(history)])
    assert changes.aborted == tuple(aborted)
    assert changes.producers == rows
    assert list(at_once.items()) == list(one_by_one.items())


@given(histories)
def test_transactions_are_those_of_a_list(history: History) -> None:
    """A transaction is open from its first batch to its producer's marker; stable is what lies before the
    first open one."""
    producers, aborted, _ = replayed(history)
    first_offsets: dict[int, int] = {}
    expected: list[Aborted] = []
    for offset, (kind, producer_id, _, _, flag) in enumerate(history):
        if kind == "send" and flag:
            first_offsets.setdefault(producer_id, offset)
        elif kind == "end" and producer_id in first_offsets:
            first = first_offsets.pop(producer_id)
            if not flag:
                stable = min(first_offsets.values(), default=offset + 1)
                expected.append(Aborted(producer_id, first, offset, stable))
    assert aborted == expected
    end = len(history)
    assert producers.last_stable_offset(end) == min(first_offsets.values(), default=end)
    for start in range(0, end + 1, 3):
        for stop in range(start, end + 1, 3):
            found = between((one for one in aborted if one.last_offset >= start), start, stop)
            assert found == tuple(
                one for one in expected if one.last_offset >= start and one.first_offset < stop
            )


def test_beyond_the_limit_the_longest_idle_one_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_producers, "MAX_PRODUCERS", 2)
    producers, _, _ = replayed([("send", 0, 0, 0, True), ("send", 1, 0, 0, False)])
    changes = producers.replay([produced(2, ("send", 2, 0, 0, True)), produced(3, ("send", 3, 0, 0, True))])
    assert [producer_id for producer_id, state in changes.producers.items() if state is None] == [1]
    assert [producer_id for producer_id, _ in producers.items()] == [0, 2, 3]  # all are open
    changes = producers.replay([produced(4, ("end", 2, 0, 0, True))])
    assert changes.producers[2] is None
    assert [producer_id for producer_id, _ in producers.items()] == [0, 3]
