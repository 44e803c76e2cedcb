"""Any sequence of appends, reads, failures and restarts has the same effect as on lists in memory."""

import errno
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kshim.storage.embedded import EmbeddedStore, freeing, writes
from kshim.storage.embedded.ahead import Ahead
from kshim.storage.interfaces import Appended, Offsets, StorageError, Store, TimestampOffset
from kshim.storage.memory import MemoryStore
from schemas.records.batch import Record, batches, decode_header, encode, records
from tests.storage.embedded import await_recovery
from tests.storage.reactor import Reactor
from tests.storage.searches import find

PARTITIONS = range(3)
batch_timestamps = st.lists(st.integers(-1, 30), min_size=1, max_size=4)
batch_sizes = st.sampled_from([0, 10, 300, 2500])
partitions = st.sampled_from(PARTITIONS)
appends = st.tuples(
    st.just("append"), partitions, st.lists(st.tuples(batch_timestamps, batch_sizes), min_size=1, max_size=3)
)
steps = st.lists(
    st.one_of(
        appends,
        appends,
        st.tuples(st.just("put"), st.sampled_from([b"a", b"b", b"ab"]), st.none() | st.binary(max_size=5)),
        st.tuples(st.just("settle")),
        st.tuples(st.just("reopen")),
        st.tuples(st.just("fail"), partitions),
        st.tuples(st.just("delete"), partitions),
    ),
    max_size=25,
)
reads = st.lists(st.tuples(partitions, st.integers(0, 40), st.integers(0, 4000), st.booleans()), max_size=20)


@dataclass
class Model:
    """The expected contents."""

    partitions: dict[int, list[tuple[int, int, int]]] = field(
        default_factory=lambda: {no: [] for no in PARTITIONS}
    )
    """The records of each partition: timestamp, and the first offset and size of its batch."""
    metadata: dict[bytes, bytes] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)
    forgotten: set[int] = field(default_factory=set)
    """Deleted before a restart. A partition_no is used only once, so whether appends still fail is
    unspecified."""


class Run:
    """A store and its model, step by step."""

    def __init__(self, data_dir: Path | None) -> None:
        self.reactor = Reactor()
        self.data_dir = data_dir
        self.model = Model()
        self.unsettled: list[tuple[Any, Any]] = []
        self.store = self.open()

    def open(self) -> Store:
        store: Store = (
            MemoryStore() if self.data_dir is None else EmbeddedStore(self.data_dir, self.reactor, sync=False)
        )
        store.open()
        return store

    def settle(self) -> None:
        """Everything in flight fires with the expected result."""
        unsettled, self.unsettled = self.unsettled, []
        assert self.reactor.wait(*(deferred for deferred, _ in unsettled)) == [
            wanted for _, wanted in unsettled
        ]

    def append(self, partition_no: int, shapes: list[tuple[list[int], int]]) -> None:
        if partition_no in self.model.forgotten:
            return
        stored = self.model.partitions[partition_no]
        base_offset = len(stored)
        joined = b""
        for timestamps, size in shapes:
            some = (Record(delta, ms, b"", bytes(size)) for delta, ms in enumerate(timestamps))
            batch = encode(some)
            joined += batch
            if partition_no not in self.model.deleted:
                first = len(stored)
                stored += [(ms, first, len(batch)) for ms in timestamps]
        deferred = self.store.log.append(partition_no, joined, now_ms=0)
        if partition_no in self.model.deleted:
            assert isinstance(self.reactor.wait(deferred)[0], StorageError)
        else:
            self.unsettled.append((deferred, Appended(base_offset, 0, -1)))

    def put(self, key: bytes, value: bytes | None) -> None:
        self.unsettled.append((self.store.metadata.put({key: value}), None))
        self.model.metadata.pop(key, None)
        if value is not None:
            self.model.metadata[key] = value

    def reopen(self) -> None:
        closed = self.store.close()
        self.settle()
        self.reactor.wait(closed)
        if self.data_dir is not None:
            self.store = self.open()
            self.model.forgotten |= self.model.deleted

    def fail(self, partition_no: int) -> None:
        """A failed append changes nothing."""
        if self.data_dir is None or partition_no in self.model.deleted:
            return
        self.settle()
        with patch.object(Ahead, "append", side_effect=OSError(errno.EIO, "EIO")):
            batch = encode([Record(0, 100, None, None)])
            results = self.reactor.wait(
                *(self.store.log.append(no, batch, now_ms=0) for no in (partition_no,) * 3)
            )
        assert [type(result) for result in results] == [StorageError] * 3
        assert isinstance(self.store, EmbeddedStore)
        await_recovery(self.store, self.reactor)

    def delete(self, partition_no: int) -> None:
        self.store.log.delete(partition_no)
        self.model.deleted.add(partition_no)
        self.model.partitions[partition_no] = []

    def check(self, wanted_reads: list[tuple[int, int, int, bool]]) -> None:
        log = self.store.log
        for partition_no, stored in self.model.partitions.items():
            end = len(stored)
            assert log.offsets(partition_no) == Offsets(0, end, end, end)
            for time in range(-1, 32):
                since = (TimestampOffset(row[0], at, 0) for at, row in enumerate(stored) if row[0] >= time)
                assert find(log.offset_for_time(partition_no, time)) == next(since, None), time
            largest = max((row[0] for row in stored), default=-1)
            wanted = find(log.offset_for_time(partition_no, largest))
            assert find(log.max_timestamp(partition_no)) == wanted
        for read in wanted_reads:
            self.check_read(*read)
        assert dict(self.store.metadata.items(b"")) == self.model.metadata

    def check_read(self, partition_no: int, offset: int, max_bytes: int, min_one: bool) -> None:
        stored = self.model.partitions[partition_no]
        data = self.store.log.read(partition_no, offset, max_bytes, min_one=min_one)
        found = [record for batch in batches(data) for record in records(batch)]
        assert sum(decode_header(batch).size for batch in batches(data)) == len(data)
        if offset >= len(stored) or (not min_one and stored[offset][2] > max_bytes):
            assert data == b""
            return
        first = stored[offset][1]
        assert [record.offset for record in found] == list(range(first, first + len(found)))
        assert [record.timestamp_ms for record in found] == [
            row[0] for row in stored[first : first + len(found)]
        ]
        assert len(data) <= max_bytes or len(list(batches(data))) == 1
        assert found


def run(steps: list[tuple[Any, ...]], reads: list[tuple[int, int, int, bool]], data_dir: Path | None) -> None:
    under_test = Run(data_dir)
    try:
        for name, *arguments in steps:
            getattr(under_test, name)(*arguments)
        under_test.settle()
        under_test.check(reads)
    finally:
        under_test.reactor.wait(under_test.store.close())


@given(steps, reads)
def test_memory(steps: list[tuple[Any, ...]], reads: list[tuple[int, int, int, bool]]) -> None:
    run(steps, reads, None)


@settings(deadline=None)
@given(steps=steps, reads=reads)
@example(  # closed during the pause between steps of a deletion, with another one queued
    steps=[
        ("append", 0, [([0], 0)]),
        ("delete", 0),
        ("settle",),
        ("append", 2, [([0], 0)]),
        ("delete", 2),
        ("reopen",),
    ],
    reads=[],
)
def test_embedded(data_dirs: Iterator[Path], steps: list[tuple[Any, ...]], reads: list[Any]) -> None:
    with patch.object(writes, "CHUNK_BYTES", 2000), patch.object(freeing, "STEP_CHUNKS", 1):
        run(steps, reads, next(data_dirs))
