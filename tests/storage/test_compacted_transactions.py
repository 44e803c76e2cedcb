"""Compaction of transactions: read_committed consumers read the same, and aborted records go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kshim.storage.embedded import EmbeddedStore, applier, compaction, log, writes
from kshim.storage.interfaces import Cleanup
from schemas.records.batch import Record, decode_header, records
from schemas.records.end_txn_marker import EndTxnMarker, decode_marker, encode_marker
from tests.storage.compacting import DAY_MS, DEFAULTS, await_passes, fill, last_values, one, stored_batches
from tests.storage.reactor import Reactor

OpenStore = Callable[..., EmbeddedStore]
P, Q = 7, 8


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MIN_DIRTY_RECORDS", 10)
    monkeypatch.setattr(applier, "PAUSES", 0)


def sent(key: bytes, value: bytes | None, sequence: int, producer_id: int = P, epoch: int = 0) -> bytes:
    return one(
        key,
        value,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )


def end(committed: bool, producer_id: int = P, epoch: int = 0) -> bytes:
    return encode_marker(EndTxnMarker(producer_id, epoch, committed, coordinator_epoch=0, timestamp_ms=0))


def committed_records(store: EmbeddedStore) -> list[Record]:
    """The records that a read_committed consumer reads from offset 0 on."""
    offsets = store.log.offsets(1)
    aborted = sorted(
        store.log.aborted_transactions(1, 0, offsets.last_stable_offset), key=lambda found: found.first_offset
    )
    aborting: set[int] = set()
    read: list[Record] = []
    for batch in stored_batches(store):
        header = decode_header(batch)
        if header.base_offset >= offsets.last_stable_offset:
            break
        while aborted and aborted[0].first_offset <= header.last_offset:
            aborting.add(aborted.pop(0).producer_id)
        if header.is_control:
            marker = decode_marker(batch)
            if marker is not None and not marker.committed:
                aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            read += records(batch)
    return read


def shape(store: EmbeddedStore) -> list[tuple[int, int, int]]:
    """Base offset, producer id and count of each batch that is not filler."""
    headers = [
        decode_header(batch)
        for batch in stored_batches(store)
        if not any(record.key == b"filler" for record in records(batch))
    ]
    return [(header.base_offset, header.producer_id, header.records_count) for header in headers]


class Log:
    def __init__(self, store: EmbeddedStore, reactor: Reactor) -> None:
        self.store, self.reactor = store, reactor

    def append(self, *appended: bytes) -> None:
        self.reactor.wait(*(self.store.log.append(1, batch, now_ms=0) for batch in appended))


@pytest.fixture
def compacted(open_embedded: OpenStore, reactor: Reactor) -> Log:
    store = open_embedded()
    store.log.configure(1, Cleanup(DEFAULTS))
    return Log(store, reactor)


def values(found: list[Record]) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in found if record.key != b"filler"]


def test_aborted_records_go_and_hide_nothing(compacted: Log) -> None:
    store, reactor = compacted.store, compacted.reactor
    compacted.append(one(b"a", b"1"), sent(b"a", b"2", 0), sent(b"b", b"3", 1), end(False))
    compacted.append(sent(b"b", b"4", 0, Q), end(True, Q), end(True, P, 1))
    assert values(committed_records(store)) == [(b"a", b"1"), (b"b", b"4")]
    fill(store, reactor)
    assert values(committed_records(store)) == [(b"a", b"1"), (b"b", b"4")]
    assert shape(store) == [(0, -1, 1), (3, P, 1), (4, Q, 1), (5, Q, 1), (6, P, 1)]
    for days in (1, 2, 3):
        fill(store, reactor, now_ms=days * DAY_MS)
    assert shape(store) == [(0, -1, 1), (4, Q, 1), (5, Q, 1), (6, P, 0)]


def test_a_marker_stays_for_its_time_when_nothing_else_is_left(compacted: Log) -> None:
    store, reactor = compacted.store, compacted.reactor
    compacted.append(sent(b"a", b"1", 0), end(False), sent(b"b", b"2", 1), end(True), one(b"b", b"3"))
    compacted.append(end(True, P, 1))  # else P's last batch stays, and its marker with it
    assert len(store.log.aborted_transactions(1, 0, 5)) == 1
    fill(store, reactor)  # several passes
    assert store.log.aborted_transactions(1, 0, 5) == ()
    assert shape(store) == [(1, P, 1), (3, P, 1), (4, -1, 1), (5, P, 1)]
    fill(store, reactor, now_ms=DAY_MS - 1)
    assert shape(store) == [(1, P, 1), (3, P, 1), (4, -1, 1), (5, P, 1)]
    fill(store, reactor, now_ms=DAY_MS)
    assert shape(store) == [(4, -1, 1), (5, P, 0)]  # P's last marker keeps its epoch
    assert values(committed_records(store)) == [(b"b", b"3")]


def test_the_last_batch_of_a_producer_stays_without_its_records(compacted: Log) -> None:
    store, reactor = compacted.store, compacted.reactor
    compacted.append(sent(b"a", b"1", 0), sent(b"a", b"2", 1), end(False))
    for _ in range(3):
        fill(store, reactor, now_ms=2 * DAY_MS)
    assert shape(store) == [(1, P, 0), (2, P, 1)]
    assert decode_header(stored_batches(store)[0]).base_sequence == 1
    reactor.result(store.close())


def test_nothing_is_compacted_from_an_open_transaction_on(compacted: Log) -> None:
    store, reactor = compacted.store, compacted.reactor
    compacted.append(one(b"a", b"1"), one(b"a", b"2"), sent(b"b", b"3", 0), one(b"a", b"4"), one(b"b", b"5"))
    fill(store, reactor)
    found = [record.value for batch in stored_batches(store) for record in records(batch)]
    assert found[:5] == [b"1", b"2", b"3", b"4", b"5"]
    assert len(found) == 35
    compacted.append(end(True))
    fill(store, reactor)
    assert values(committed_records(store)) == [(b"a", b"4"), (b"b", b"5")]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("plain"), st.sampled_from([b"a", b"b", b"c"]), st.sampled_from([None, b"1", b"2"])),
        st.tuples(
            st.just("send"),
            st.sampled_from([P, Q]),
            st.sampled_from([b"a", b"b", b"c"]),
            st.sampled_from([None, b"1", b"2"]),
        ),
        st.tuples(st.just("send"), st.sampled_from([P, Q]), st.sampled_from([b"a", b"b"]), st.just(b"3")),
        st.tuples(st.just("end"), st.sampled_from([P, Q]), st.booleans(), st.booleans()),
        st.tuples(st.just("settle")),
        st.tuples(st.just("sleep"), st.sampled_from([1, DAY_MS])),
        st.tuples(st.just("reopen")),
    ),
    max_size=60,
)


@dataclass
class Run:
    """A compacted partition, and all that was appended to it."""

    data_dir: Path
    reactor: Reactor = field(default_factory=Reactor)
    records: list[tuple[Record, list[bool | None]]] = field(default_factory=list)
    """By offset: the record, and a list that gets its transaction's outcome."""
    open_transactions: dict[int, tuple[int, list[bool | None]]] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=lambda: {P: 0, Q: 0})
    sequences: dict[int, int] = field(default_factory=lambda: {P: 0, Q: 0})
    end_offset: int = 0
    now_ms: int = 0
    unsettled: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        self.store = EmbeddedStore(self.data_dir, self.reactor, sync=False)
        self.store.open()
        self.store.log.configure(1, Cleanup(DEFAULTS))

    def append(self, batch: bytes) -> None:
        self.unsettled.append(self.store.log.append(1, batch, now_ms=self.now_ms))
        self.end_offset += 1

    def plain(self, key: bytes, value: bytes | None) -> None:
        self.records.append((Record(self.end_offset, 0, key, value), [True]))
        self.append(one(key, value))

    def send(self, producer_id: int, key: bytes, value: bytes | None) -> None:
        _, outcome = self.open_transactions.setdefault(producer_id, (self.end_offset, [None]))
        self.records.append((Record(self.end_offset, 0, key, value), outcome))
        self.append(sent(key, value, self.sequences[producer_id], producer_id, self.epochs[producer_id]))
        self.sequences[producer_id] += 1

    def end(self, producer_id: int, committed: bool, bumps: bool) -> None:
        if bumps:
            self.epochs[producer_id] += 1
            self.sequences[producer_id] = 0
        if producer_id in self.open_transactions:
            _, outcome = self.open_transactions.pop(producer_id)
            outcome[0] = committed
        self.append(end(committed, producer_id, self.epochs[producer_id]))

    def sleep(self, ms: int) -> None:
        self.now_ms += ms

    def reopen(self) -> None:
        self.reactor.result(self.store.close())
        self.unsettled.clear()
        self.open()

    def settle(self) -> None:
        unsettled, self.unsettled = self.unsettled, []
        self.reactor.wait(*unsettled)
        await_passes(self.store, self.reactor)
        stable = min((first for first, _ in self.open_transactions.values()), default=self.end_offset)
        assert self.store.log.offsets(1).last_stable_offset == stable
        model = [record for record, (outcome,) in self.records if outcome and record.offset < stable]
        read = committed_records(self.store)
        assert last_values(read) == last_values(model)
        assert {record.offset for record in read} <= {record.offset for record in model}


@settings(deadline=None, max_examples=60)
@given(steps=steps)
def test_model(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]]) -> None:
    with (
        patch.object(log, "MIN_DIRTY_RECORDS", 4),
        patch.object(applier, "PAUSES", 0),
        patch.object(compaction, "STEP_BYTES", 200),
        patch.object(compaction, "STEP_CHUNKS", 3),
        patch.object(compaction, "CHUNK_BYTES", 400),
        patch.object(writes, "CHUNK_BYTES", 300),
    ):
        run = Run(tmp_path_factory.mktemp("run") / "data")
        try:
            for name, *arguments in steps:
                getattr(run, name)(*arguments)
            run.settle()
        finally:
            run.reactor.result(run.store.close())
