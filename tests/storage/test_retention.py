"""The start of a log: DeleteRecords, retention.ms and retention.bytes, in every store."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kshim.storage.embedded import EmbeddedStore, applier, compaction, freeing, log, writes
from kshim.storage.embedded.rows import CHUNK_KEY
from kshim.storage.interfaces import Appended, Cleanup, Compaction, Retention, StorageError, Store
from kshim.storage.memory import MemoryStore
from schemas.records.batch import Record, batches, encode, records
from tests.storage.embedded import apply_all, await_recovery, fail_writes
from tests.storage.reactor import Reactor
from tests.storage.searches import find

OpenStore = Callable[..., EmbeddedStore]
FOR_EVER = Retention(-1, -1)


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applier, "PAUSES", 0)
    monkeypatch.setattr(applier, "RETRY_S", 0.01)


def settle(store: Store, reactor: Reactor) -> None:
    """Wait until the store has no work of its own left."""
    if not isinstance(store, EmbeddedStore):
        return
    quiet = 0
    while quiet < 3:
        apply_all(store, reactor)
        quiet = 0 if any(chore.due for chore in store.log._chores) else quiet + 1


def stored(store: Store, partition_no: int = 1) -> list[int]:
    """The offsets of all records from the log start offset on."""
    start, end, *_ = store.log.offsets(partition_no)
    found: list[int] = []
    offset = start
    while data := store.log.read(partition_no, offset, 10**6):
        found += [record.offset for batch in batches(data) for record in records(batch)]
        offset = found[-1] + 1
    assert offset == end
    return [offset for offset in found if offset >= start]


def chunks(store: EmbeddedStore) -> list[tuple[int, int]]:
    """(partition_no, last offset) of every chunk that takes up space."""
    with store._environment.read("log") as transaction:
        return [CHUNK_KEY.unpack(key) for key in transaction.cursor().iternext(values=False)]


class TestLogStart:
    @pytest.fixture(autouse=True)
    def _store(self, store: Store, reactor: Reactor) -> None:
        self.store, self.log, self.reactor = store, store.log, reactor

    def fill(self, count: int = 10, size: int = 0, partition_no: int = 1) -> None:
        """Append batches of one record each, with timestamps 1000, 1001, ..."""
        for number in range(count):
            batch = encode([Record(0, 1000 + number, b"%d" % number, bytes(size))])
            self.reactor.result(self.log.append(partition_no, batch, now_ms=0))

    def delete_records(self, offset: int) -> int:
        start: int = self.reactor.result(self.log.delete_records(1, offset))
        settle(self.store, self.reactor)
        return start

    def clean(self, now_ms: int, retention: Retention | None) -> int:
        """Apply the retention; returns the log start offset."""
        self.log.configure(1, Cleanup(retention=retention))
        self.log.clean(now_ms)
        settle(self.store, self.reactor)
        return self.log.offsets(1).log_start_offset

    def test_records_below_the_start_are_gone(self) -> None:
        self.fill()
        self.fill(3, partition_no=2)
        assert self.delete_records(4) == 4
        assert self.log.offsets(1) == (4, 10, 10, 10)
        assert (stored(self.store), stored(self.store, 2)) == (list(range(4, 10)), [0, 1, 2])
        assert self.log.read(1, 3, 1000) == b""
        offset_for_time = find(self.log.offset_for_time(1, 0))
        assert offset_for_time is not None
        assert offset_for_time.offset == 4

    def test_the_start_does_not_go_back(self) -> None:
        self.fill()
        assert [self.delete_records(offset) for offset in (4, 2, 0, 5)] == [4, 4, 4, 5]

    def test_many_at_once(self) -> None:
        self.fill()
        deleted = [self.log.delete_records(1, offset) for offset in (3, 7, 5)]
        assert self.reactor.wait(*deleted) == [3, 7, 7] or isinstance(self.store, EmbeddedStore)
        assert self.log.offsets(1).log_start_offset == 7

    def test_a_start_within_a_batch(self) -> None:
        batch = encode([Record(delta, 1000 + delta, None, b"") for delta in range(5)])
        for _ in range(2):
            self.reactor.result(self.log.append(1, batch, now_ms=0))
        assert self.delete_records(7) == 7
        assert stored(self.store) == [7, 8, 9]
        found = find(self.log.offset_for_time(1, 1001))
        assert found is not None
        assert (found.offset, found.timestamp_ms) == (7, 1002)
        assert self.log.read(1, 6, 1000) == b""

    def test_the_largest_timestamp_may_lie_below_a_start_within_a_batch(self) -> None:
        for timestamps in ((5,), (0, 9, 3), (1,)):
            batch = encode([Record(n, ms, None, b"") for n, ms in enumerate(timestamps)])
            self.reactor.result(self.log.append(1, batch, now_ms=0))
        self.delete_records(3)
        found = find(self.log.max_timestamp(1))
        assert found is not None
        assert (found.offset, found.timestamp_ms) == (3, 3)

    def test_a_log_may_become_empty_and_go_on(self) -> None:
        self.fill()
        assert self.delete_records(10) == 10
        assert stored(self.store) == []
        assert (find(self.log.max_timestamp(1)), find(self.log.offset_for_time(1, 0))) == (None, None)
        batch = encode([Record(0, 5, None, b"")])
        assert self.reactor.result(self.log.append(1, batch, now_ms=0)) == Appended(10, 10, -1)
        assert stored(self.store) == [10]

    def test_of_a_deleted_partition_nothing_can_be_deleted(self) -> None:
        self.fill()
        self.log.delete(1)
        with pytest.raises(StorageError, match="partition 1 was deleted"):
            self.delete_records(0)

    def test_by_age(self) -> None:
        self.fill()
        assert self.clean(1000 + 500, Retention(retention_ms=500)) == 0  # exactly as old as allowed
        assert self.clean(1001 + 500, Retention(retention_ms=500)) == 1
        assert self.clean(1007 + 500, Retention(retention_ms=500)) == 7
        assert stored(self.store) == [7, 8, 9]
        assert self.clean(99_999, Retention(retention_ms=500)) == 10

    def test_by_age_the_youngest_record_counts(self) -> None:
        for timestamps in ((100, 900), (100, 200), (950, 100), (300, 400)):
            batch = encode([Record(n, ms, None, b"") for n, ms in enumerate(timestamps)])
            self.reactor.result(self.log.append(1, batch, now_ms=0))
        assert self.clean(1500, Retention(retention_ms=700)) == 0
        assert self.clean(1601, Retention(retention_ms=700)) == 4
        assert self.clean(1651, Retention(retention_ms=700)) == 8

    def test_what_is_behind_the_youngest_record_goes_when_that_has_gone(self) -> None:
        for timestamp in (99_999, 100, 200, 300):
            batch = encode([Record(0, timestamp, None, b"")])
            self.reactor.result(self.log.append(1, batch, now_ms=0))
        assert self.clean(1001, Retention(retention_ms=800)) == 0
        self.delete_records(1)
        assert self.clean(1001, Retention(retention_ms=800)) == 3

    def test_records_without_timestamps_go_with_the_next_that_has_one(self) -> None:
        for timestamp in (-1, -1):
            batch = encode([Record(0, timestamp, None, b"")])
            self.reactor.result(self.log.append(1, batch, now_ms=0))
        assert self.clean(99_999, Retention(retention_ms=1)) == 0
        self.fill(1)
        assert self.clean(99_999, Retention(retention_ms=1)) == 3

    def test_by_size(self) -> None:
        self.fill(10, size=1000)
        size = len(self.log.read(1, 9, 1))
        assert self.clean(0, Retention(-1, 10 * size)) == 0
        assert self.clean(0, Retention(-1, 9 * size + 1)) == 0
        assert self.clean(0, Retention(-1, 9 * size)) == 1
        assert self.clean(0, Retention(-1, 3 * size - 1)) == 7
        assert self.clean(0, Retention(-1, 0)) == 10

    def test_by_both_whichever_asks_for_more(self) -> None:
        self.fill(10, size=1000)
        size = len(self.log.read(1, 9, 1))
        assert self.clean(1502, Retention(500, 7 * size)) == 3
        assert self.clean(1506, Retention(500, 7 * size)) == 6

    @pytest.mark.parametrize("retention", [None, FOR_EVER])
    def test_without_retention_nothing_goes(self, retention: Retention | None) -> None:
        self.fill()
        assert self.clean(10**12, retention) == 0

    def test_retention_may_change(self) -> None:
        self.fill()
        self.log.configure(1, Cleanup(retention=Retention(0, 0)))
        assert self.clean(10**12, None) == 0
        assert self.clean(10**12, Retention()) == 10

    def test_partitions_that_were_never_appended_to(self) -> None:
        assert self.clean(10**12, Retention(0, 0)) == 0


class TestOnDisk:
    def fill(self, store: EmbeddedStore, reactor: Reactor, partition_no: int = 1, count: int = 10) -> None:
        for number in range(count):
            batch = encode([Record(0, 1000 + number, b"%d" % number, b"")])
            reactor.result(store.log.append(partition_no, batch, now_ms=0))

    def test_the_start_outlives_a_restart(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded()
        for partition_no in (1, 2):
            self.fill(store, reactor, partition_no)
        reactor.wait(store.log.delete_records(1, 4), store.log.delete_records(2, 10))
        reactor.result(store.close())
        store = open_embedded()
        assert store.log.offsets(1)[:3] == (4, 10, 10)
        assert store.log.offsets(2)[:3] == (10, 10, 10)
        batch = encode([Record(0, 1, None, None)])
        assert reactor.result(store.log.append(2, batch, now_ms=0)) == Appended(10, 10, -1)

    def test_space_is_freed_in_steps_and_after_a_restart_too(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(freeing, "STEP_CHUNKS", 2)
        store = open_embedded()
        for partition_no in (0, 1, 2):
            self.fill(store, reactor, partition_no)
        with monkeypatch.context() as slow:
            slow.setattr(type(store.log._chores.trimming), "due", False)
            reactor.result(store.log.delete_records(1, 7))
            apply_all(store, reactor)
            assert len(chunks(store)) == 30
            reactor.result(store.close())
        store = open_embedded()
        settle(store, reactor)
        assert [offset for number, offset in chunks(store) if number == 1] == [7, 8, 9]
        assert len(chunks(store)) == 23

    def test_nothing_is_freed_that_somebody_may_still_read(
        self, open_embedded: OpenStore, reactor: Reactor
    ) -> None:
        """It is durable, but the reactor does not know yet."""
        store = open_embedded(sync=True)
        self.fill(store, reactor)
        settle(store, reactor)
        deleted = store.log.delete_records(1, 7)
        reactor.await_call()
        assert stored(store) == list(range(10))
        reactor.result(deleted)
        assert stored(store) == [7, 8, 9]

    def test_a_start_that_cannot_be_written_changes_nothing(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_embedded()
        self.fill(store, reactor)
        with monkeypatch.context() as broken:
            fail_writes(broken, OSError(errno.EIO, "EIO"))
            with pytest.raises(StorageError, match="EIO"):
                reactor.result(store.log.delete_records(1, 7))
        assert stored(store) == list(range(10))
        await_recovery(store, reactor)
        assert reactor.result(store.log.delete_records(1, 7)) == 7

    def test_a_deleted_partition_leaves_no_start(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded()
        self.fill(store, reactor)
        reactor.result(store.log.delete_records(1, 7))
        store.log.delete(1)
        settle(store, reactor)
        assert chunks(store) == []
        with store._environment.read("starts") as transaction:
            assert list(transaction.cursor()) == []

    def test_compaction_brings_nothing_back(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A compaction pass has read the freed records before it writes."""
        monkeypatch.setattr(log, "MIN_DIRTY_RECORDS", 5)
        monkeypatch.setattr(compaction, "STEP_BYTES", 1)
        monkeypatch.setattr(compaction, "CHUNK_BYTES", 300)
        store = open_embedded()
        put = compaction._Compacting._put
        trimmed = []

        def late(self: Any, transaction: Any) -> None:
            if not trimmed:
                trim = writes.Trim(partition_no=1, log_start_offset=9)
                writes._apply_trim(store._environment, transaction, trim)
                freeing.free_chunks(store._environment, transaction, 1, 9)
                trimmed.append(True)
            put(self, transaction)

        monkeypatch.setattr(compaction._Compacting, "_put", late)
        store.log.configure(1, Cleanup(Compaction(), Retention()))
        self.fill(store, reactor, count=30)
        settle(store, reactor)
        assert trimmed
        assert min(offset for _, offset in chunks(store)) >= 9


# ---- model

steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"), st.lists(st.integers(0, 40), min_size=1, max_size=3), st.integers(0, 600)
        ),
        st.tuples(st.just("delete_records"), st.integers(0, 100)),
        st.tuples(st.just("clean"), st.integers(0, 50), st.integers(-1, 30), st.sampled_from([-1, 0, 500])),
        st.tuples(st.just("reopen")),
    ),
    max_size=20,
)


class Run:
    """A store and its expected batches, each a chunk: (base offset, timestamps, bytes)."""

    def __init__(self, data_dir: Path | None) -> None:
        self.reactor = Reactor()
        self.data_dir = data_dir
        self.batches: list[tuple[int, list[int], int]] = []
        self.start = self.end = 0
        self.store = self.open()

    def open(self) -> Store:
        store: Store = (
            MemoryStore() if self.data_dir is None else EmbeddedStore(self.data_dir, self.reactor, sync=False)
        )
        store.open()
        return store

    def append(self, timestamps: list[int], size: int) -> None:
        batch = encode([Record(delta, ms, b"", bytes(size)) for delta, ms in enumerate(timestamps)])
        self.reactor.result(self.store.log.append(1, batch, now_ms=0))
        self.batches.append((self.end, timestamps, len(batch)))
        self.end += len(timestamps)

    def delete_records(self, offset: int) -> None:
        self.begin(max(self.start, min(offset, self.end)))
        assert self.reactor.result(self.store.log.delete_records(1, min(offset, self.end))) == self.start

    def begin(self, start: int) -> None:
        self.start = start
        self.batches = [batch for batch in self.batches if batch[0] + len(batch[1]) > start]

    def clean(self, now_ms: int, retention_ms: int, retention_bytes: int) -> None:
        self.store.log.configure(1, Cleanup(retention=Retention(retention_ms, retention_bytes)))
        self.store.log.clean(now_ms)
        settle(self.store, self.reactor)
        left = list(self.batches)
        while left and retention_ms >= 0 and max(left[0][1]) < now_ms - retention_ms:
            del left[0]
        while left and 0 <= retention_bytes <= sum(batch[2] for batch in left[1:]):
            del left[0]
        self.begin(max(self.start, left[0][0] if left else self.end))

    def reopen(self) -> None:
        if self.data_dir is not None:
            self.reactor.result(self.store.close())
            self.store = self.open()

    def check(self) -> None:
        log = self.store.log
        assert log.offsets(1) == (self.start, self.end, self.end, self.end)
        assert stored(self.store) == list(range(self.start, self.end))
        left = [
            (ms, base + delta)
            for base, timestamps, _ in self.batches
            for delta, ms in enumerate(timestamps)
            if base + delta >= self.start
        ]
        for time in range(42):
            found = find(log.offset_for_time(1, time))
            assert (found and found.offset) == next((o for ms, o in left if ms >= time), None)
        largest = find(log.max_timestamp(1))
        assert (largest and largest.timestamp_ms) == max((ms for ms, _ in left), default=None)


def run(steps: list[tuple[Any, ...]], data_dir: Path | None) -> None:
    under_test = Run(data_dir)
    try:
        for name, *arguments in steps:
            getattr(under_test, name)(*arguments)
            under_test.check()
    finally:
        under_test.reactor.wait(under_test.store.close())


@given(steps)
def test_model_in_memory(steps: list[tuple[Any, ...]]) -> None:
    run(steps, None)


@settings(deadline=None, max_examples=60)
@given(steps=steps)
def test_model_on_disk(data_dirs: Iterator[Path], steps: list[tuple[Any, ...]]) -> None:
    with (
        patch.object(applier, "PAUSES", 0),
        patch.object(applier, "APPLY_S", 0),
        patch.object(writes, "CHUNK_BYTES", 1),
        patch.object(writes, "STEP_SIZES", 2),
        patch.object(freeing, "STEP_CHUNKS", 1),
    ):
        run(steps, next(data_dirs))
