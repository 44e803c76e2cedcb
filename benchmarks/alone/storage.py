"""The cost of the durable store against plain files: append + fdatasync, and pread.

Both sides take turns in one run; compare only the ratios between machines. The store appends to its
log, syncs that once for all writes that wait, and writes to LMDB in the background. The file can neither be
read by offset nor survive a torn write.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from time import perf_counter
from typing import Any

from twisted.internet.defer import Deferred

from kshim.storage.embedded import EmbeddedStore
from kshim.storage.interfaces import Cleanup, Compaction
from kshim.storage.journal import LogJournal
from schemas.records.batch import Record, encode, validate

ROUNDS = 5
BATCH = encode([Record(0, 1, None, os.urandom(16 * 1024 - 80))])
SMALL = encode([Record(0, 1, None, os.urandom(100))])


class Reactor:
    """Runs the callbacks of the writer thread."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]]] = SimpleQueue()

    def callFromThread(self, function: Callable[..., Any], *args: Any) -> None:  # noqa: N802
        self._calls.put((function, args))

    def wait(self, *deferreds: Deferred[Any]) -> None:
        left = len(deferreds)

        def fired(_: object) -> None:
            nonlocal left
            left -= 1

        for deferred in deferreds:
            deferred.addCallback(fired)
        while left:
            self.turn()

    def turn(self) -> None:
        function, args = self._calls.get()
        function(*args)


def seconds(function: Callable[[], object], times: int) -> float:
    """The median time of one call."""
    taken = []
    for _ in range(times):
        start = perf_counter()
        function()
        taken.append(perf_counter() - start)
    return median(taken)


def seconds_at(taken: list[float], percent: int) -> float:
    return sorted(taken)[len(taken) * percent // 100]


def compare(name: str, unit: str, ours: Callable[[], float], plain: Callable[[], float]) -> None:
    """Take turns, then print the medians."""
    pairs = [(ours(), plain()) for _ in range(ROUNDS)]
    our, other = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
    print(f"{name:42} {our:10.2f} {unit:8} plain file {other:10.2f}   ratio {our / other:5.2f}")


def run(_: object, directory: Path, *__: object) -> None:
    reactor = Reactor()
    start = perf_counter()
    store = EmbeddedStore(directory / "data", reactor)  # type: ignore[arg-type]
    store.open()
    print(f"{'open an empty directory':42} {(perf_counter() - start) * 1e3:10.2f} ms")
    descriptor = os.open(directory / "plain", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    measure_appends(store, reactor, descriptor)
    measure_reads(store, descriptor)
    measure_journal(store, reactor)
    measure_compaction(store, reactor)
    print(f"{'validate a batch of 16 KiB':42} {seconds(lambda: validate(BATCH), 10_000) * 1e6:10.2f} µs")
    reactor.wait(store.close())
    os.close(descriptor)


def measure_appends(store: EmbeddedStore, reactor: Reactor, descriptor: int) -> None:
    def group() -> None:
        reactor.wait(*(store.log.append(1, BATCH, now_ms=0) for _ in range(8)))

    def single() -> None:
        reactor.wait(store.log.append(2, SMALL, now_ms=0))

    def plain(data: bytes) -> None:
        os.write(descriptor, data)
        os.fdatasync(descriptor)

    megabytes = 8 * len(BATCH) / 1e6
    compare(
        "append, 8 batches of 16 KiB a commit",
        "MB/s",
        lambda: megabytes / seconds(group, 100),
        lambda: megabytes / seconds(lambda: plain(BATCH * 8), 100),
    )
    compare(
        "one synchronous append of 180 bytes, p50",
        "ms",
        lambda: seconds(single, 200) * 1e3,
        lambda: seconds(lambda: plain(SMALL), 200) * 1e3,
    )
    burst = 1000
    many = seconds(lambda: reactor.wait(*(store.log.append(3, SMALL, now_ms=0) for _ in range(burst))), 20)
    print(f"{'append, bursts of 1000 small batches':42} {burst / many:10.0f} batches/s")


def measure_reads(store: EmbeddedStore, descriptor: int) -> None:
    end = store.log.offsets(1).high_watermark
    read_bytes = 1 << 20

    def ours() -> float:
        start, offset, total = perf_counter(), 0, 0
        while offset < end:
            data = store.log.read(1, offset, read_bytes)
            offset += len(data) // len(BATCH)
            total += len(data)
        return total / 1e6 / (perf_counter() - start)

    def plain() -> float:
        start, total = perf_counter(), end * len(BATCH)
        for offset in range(0, total, read_bytes):
            os.pread(descriptor, read_bytes, offset)
        return total / 1e6 / (perf_counter() - start)

    compare("read, 1 MiB at a time", "MB/s", ours, plain)
    small = seconds(lambda: store.log.read(2, 100, 100), 5000)
    print(f"{'read one small batch':42} {small * 1e6:10.2f} µs")


def measure_journal(store: EmbeddedStore, reactor: Reactor) -> None:
    journal = LogJournal(store.log, [4])
    commits = [[(b"key of a commit %d" % number, bytes(40))] for number in range(20_000)]
    start = perf_counter()
    for begin in range(0, len(commits), 100):
        reactor.wait(*(journal.append(0, records, 1) for records in commits[begin : begin + 100]))
    print(f"{'journal, 100 appends a commit':42} {len(commits) / (perf_counter() - start):10.0f} records/s")
    start = perf_counter()
    loaded = sum(1 for _ in journal.load(0))
    print(f"{'journal, load':42} {loaded / (perf_counter() - start):10.0f} records/s")


def measure_compaction(store: EmbeddedStore, reactor: Reactor) -> None:
    """Measure the same commits to few keys, into a shard that is compacted and one that is not."""
    journal = LogJournal(store.log, [5, 6])
    store.log.configure(6, Cleanup(Compaction()))
    commits = [[(b"key of a commit %d" % (number % 100), bytes(40))] for number in range(200_000)]
    for shard, name in ((0, "kept whole"), (1, "compacted")):
        waits = []
        for begin in range(0, len(commits), 100):
            start = perf_counter()
            reactor.wait(*(journal.append(shard, records, 1) for records in commits[begin : begin + 100]))
            waits.append(perf_counter() - start)
        while store.log._partitions[5 + shard].is_compacting:
            reactor.turn()
        start = perf_counter()
        loaded = sum(1 for _ in journal.load(shard))
        load_ms = (perf_counter() - start) * 1e3
        print(f"{f'journal, 200,000 commits, {name}':42} {loaded:10} records loaded in {load_ms:.1f} ms")
        print(f"{'    100 of its appends, p50':42} {seconds_at(waits, 50) * 1e3:10.2f} ms")
        print(f"{'    p99':42} {seconds_at(waits, 99) * 1e3:10.2f} ms")
