"""Compaction keeps the last record of each key at its offset, whatever happens meanwhile."""

import errno
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kshim.storage import compaction as rules
from kshim.storage.embedded import EmbeddedStore, applier, compaction, log, writes
from kshim.storage.embedded.ahead import Ahead
from kshim.storage.embedded.applier import Applier
from kshim.storage.embedded.compaction import Compactor, _Compacting
from kshim.storage.embedded.rows import CHUNK_KEY, SO_FAR
from kshim.storage.interfaces import Cleanup, Compaction, JournalBatch, Offsets, StorageError, TimestampOffset
from kshim.storage.journal import LogJournal
from schemas.records.batch import (
    Compression,
    Record,
    RecordBatchHeader,
    batches,
    crc32c,
    decode_header,
    encode,
    records,
)
from tests.storage.compacting import (
    DAY_MS,
    DEFAULTS,
    await_passes,
    fill,
    last_values,
    one,
    stored,
    stored_batches,
)
from tests.storage.embedded import apply_all, await_recovery
from tests.storage.reactor import PATIENCE_S, Reactor
from tests.storage.searches import find

pytestmark = pytest.mark.thorough

OpenStore = Callable[..., EmbeddedStore]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings with which a few records suffice for a pass, and steps follow without delay."""
    monkeypatch.setattr(log, "MIN_DIRTY_RECORDS", 10)
    monkeypatch.setattr(applier, "PAUSES", 0)
    monkeypatch.setattr(applier, "RETRY_S", 0.01)


def largest_timestamps(store: EmbeddedStore) -> list[tuple[int, int]]:
    """For each chunk its last offset, and the largest timestamp so far."""
    environment = store._environment
    with environment.read("log") as transaction:
        return [(CHUNK_KEY.unpack(k)[1], SO_FAR.unpack_from(v)[0]) for k, v in transaction.cursor()]


class TestPass:
    def test_the_last_record_of_each_key_stays_where_it_was(
        self, open_embedded: OpenStore, reactor: Reactor
    ) -> None:
        store = open_embedded()
        store.log.configure(1, Cleanup(DEFAULTS))
        for number in range(100):
            reactor.result(store.log.append(1, one(b"%d" % (number % 4), b"%d" % number, number), now_ms=0))
        await_passes(store, reactor)
        found = stored(store)
        assert len(found) < 20
        assert [(r.offset, r.timestamp_ms, r.value) for r in found] == [
            (r.offset, r.offset, b"%d" % r.offset) for r in found
        ]
        assert last_values(found) == {b"%d" % (n % 4): b"%d" % n for n in range(96, 100)}
        assert store.log.offsets(1) == Offsets(0, 100, 100, 100)

    def test_other_partitions_keep_everything(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded()
        store.log.configure(1, Cleanup(DEFAULTS))
        for number in range(50):
            reactor.wait(*(store.log.append(no, one(b"k", b"%d" % number), now_ms=0) for no in (0, 1, 2)))
        await_passes(store, reactor)
        assert [len(stored(store, no)) for no in (0, 2)] == [50, 50]
        assert len(stored(store)) < 20

    def test_a_batch_keeps_its_bounds_codec_and_headers(
        self, open_embedded: OpenStore, reactor: Reactor
    ) -> None:
        store = open_embedded()
        store.log.configure(1, Cleanup(DEFAULTS))
        headers = (("h", b"1"), ("n", None))
        some = [Record(n, 50 - n, b"%d" % n, b"old" if n != 2 else b"only", headers) for n in range(4)]
        reactor.result(store.log.append(1, encode(some, compression=Compression.ZSTD), now_ms=0))
        for key in (b"0", b"1", b"3"):
            reactor.result(store.log.append(1, one(key, b"new"), now_ms=0))
        fill(store, reactor)
        batch = stored_batches(store)[0]
        header = decode_header(batch)
        assert (header.base_offset, header.last_offset_delta, header.records_count) == (0, 3, 1)
        assert (header.compression, header.max_timestamp) == (Compression.ZSTD, 48)
        assert list(records(batch)) == [Record(2, 48, b"2", b"only", headers)]

    def test_a_tombstone_stays_for_a_day_after_the_first_pass(
        self, open_embedded: OpenStore, reactor: Reactor
    ) -> None:
        store = open_embedded()
        store.log.configure(1, Cleanup(DEFAULTS))
        reactor.result(store.log.append(1, one(b"a", b"1", 5), now_ms=0))
        reactor.result(store.log.append(1, one(b"a", None, 7), now_ms=0))
        fill(store, reactor, now_ms=1000)
        first = stored_batches(store)[0]
        assert decode_header(first).delete_horizon_ms == 1000 + DAY_MS
        assert list(records(first)) == [Record(1, 7, b"a", None)]
        fill(store, reactor, now_ms=999 + DAY_MS)
        assert stored(store)[0] == Record(1, 7, b"a", None)
        fill(store, reactor, now_ms=1000 + DAY_MS)
        assert {record.key for record in stored(store)} == {b"filler"}

    def test_delete_retention_ms_is_the_topics(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded()
        store.log.configure(1, Cleanup(Compaction(delete_retention_ms=0)))
        reactor.result(store.log.append(1, one(b"a", None), now_ms=0))
        fill(store, reactor)
        fill(store, reactor)
        assert {record.key for record in stored(store)} == {b"filler"}

    def test_records_younger_than_min_compaction_lag_ms_stay(
        self, open_embedded: OpenStore, reactor: Reactor
    ) -> None:
        store = open_embedded()
        store.log.configure(1, Cleanup(Compaction(min_compaction_lag_ms=1000)))
        for number in range(20):
            reactor.result(store.log.append(1, one(b"k", b"%d" % number, 100 + number), now_ms=1104))
        await_passes(store, reactor)
        assert [record.value for record in stored(store)] == [b"%d" % number for number in range(4, 20)]
        store.log.clean(2000)
        await_passes(store, reactor)
        assert [record.value for record in stored(store)] == [b"18", b"19"]

    def test_nothing_happens_before_enough_is_dirty(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded()
        store.log.configure(1, Cleanup(Compaction(min_cleanable_dirty_ratio=0.8)))
        for number in range(31):  # the first pass keeps all of these but the newest
            reactor.result(store.log.append(1, one(b"%d" % number, b""), now_ms=0))
        await_passes(store, reactor)
        end = store.log._partitions[1].progress.end
        dirty_ratios = []
        for _ in range(150):
            assert store.log._partitions[1].progress.end == end
            reactor.result(store.log.append(1, one(b"0", b""), now_ms=0))
            high_watermark = store.log.offsets(1).high_watermark
            dirty_ratios.append((high_watermark - end) / high_watermark)
            if store.log._partitions[1].is_compacting:
                break
        assert 0.75 < dirty_ratios[-1] < 0.9
        await_passes(store, reactor)
        assert store.log._partitions[1].progress.end > end

    @pytest.mark.parametrize("ratio", [1.0, float("nan")])
    def test_never_with_a_ratio_that_is_not_exceeded(
        self, open_embedded: OpenStore, reactor: Reactor, ratio: float
    ) -> None:
        store = open_embedded()
        store.log.configure(1, Cleanup(Compaction(min_cleanable_dirty_ratio=ratio)))
        reactor.wait(*(store.log.append(1, one(b"k", b""), now_ms=0) for _ in range(100)))
        assert len(stored(store)) == 100

    def test_more_keys_than_fit_take_several_rounds(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rules, "MAX_KEYS", 7)
        store = open_embedded()
        for number in range(200):
            reactor.result(store.log.append(1, one(b"%d" % (number % 20), b"%d" % number), now_ms=0))
        rounds = []
        take = store.log.take
        monkeypatch.setattr(store.log, "take", lambda news: (rounds.append(news), take(news)))
        store.log.configure(1, Cleanup(DEFAULTS))
        reactor.result(store.log.append(1, one(b"0", b"200"), now_ms=0))
        await_passes(store, reactor)
        found = stored(store)
        assert last_values(found) == {b"%d" % (n % 20): b"%d" % n for n in range(181, 201)}
        assert len(rounds) > 5
        assert len(found) < 100

    def test_small_chunks_become_one(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded()
        store.log.configure(1, Cleanup(DEFAULTS))
        for number in range(300):
            reactor.result(store.log.append(1, one(b"%d" % number, b""), now_ms=0))
        await_passes(store, reactor)
        with store._environment.read("log") as transaction:
            chunks = transaction.stat(store._environment.log)["entries"]
        assert chunks <= 300 - store.log._partitions[1].progress.end + 2
        assert len(stored(store)) == 300

    def test_largest_timestamp_that_was_removed(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded()
        store.log.configure(1, Cleanup(DEFAULTS))
        reactor.result(store.log.append(1, one(b"a", b"1", 900), now_ms=0))
        reactor.result(store.log.append(1, one(b"b", b"1", 500), now_ms=0))
        reactor.result(store.log.append(1, one(b"a", b"2", 300), now_ms=0))
        fill(store, reactor)
        assert find(store.log.max_timestamp(1)) == TimestampOffset(500, 1, 0)
        assert find(store.log.offset_for_time(1, 501)) is None
        assert find(store.log.offset_for_time(1, 100)) == TimestampOffset(500, 1, 0)

    def test_largest_timestamps_so_far_are_made_right_in_chunks_that_stay(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(compaction, "CHUNK_BYTES", 500)
        store = open_embedded()
        store.log.configure(1, Cleanup(DEFAULTS))
        big = bytes(400)
        for rows in (
            [(900, b"filler", b""), (10, b"1", big)],
            [(20, b"2", big)],
            [(15, b"filler", b""), (30, b"3", big)],
        ):
            batch = encode(Record(n, *row) for n, row in enumerate(rows))
            reactor.result(store.log.append(1, batch, now_ms=0))
        fill(store, reactor)
        assert largest_timestamps(store)[:3] == [(1, 10), (2, 20), (4, 30)]

    def test_a_read_in_the_gap_between_two_chunks_goes_on(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(compaction, "CHUNK_BYTES", 500)
        store = open_embedded()
        store.log.configure(1, Cleanup(DEFAULTS))
        for key, size in ((b"a", 400), (b"filler", 1), (b"b", 400), (b"filler", 1)):
            reactor.result(store.log.append(1, one(key, bytes(size)), now_ms=0))
        fill(store, reactor)
        assert [record.offset for record in stored(store)[:2]] == [0, 2]
        for offset in (1, 2):
            (batch,) = batches(store.log.read(1, offset, 1))
            assert decode_header(batch).base_offset == 2
        assert decode_header(store.log.read(1, 3, 1)).base_offset > 3

    def test_what_is_not_understood_is_left_alone(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded()
        store.log.configure(1, Cleanup(DEFAULTS))
        broken = bytearray(one(b"filler", b"x"))
        broken[61] = 0xFF
        broken[17:21] = crc32c(memoryview(broken)[21:]).to_bytes(4)
        leader_change = encode([Record(0, 0, b"\0\0\0\2", b"\0\0")], is_control=True)
        wanted = [bytes(broken), leader_change]
        reactor.wait(*(store.log.append(1, batch, now_ms=0) for batch in wanted))
        fill(store, reactor)
        assert [bytes(batch[17:]) for batch in stored_batches(store)[:2]] == [batch[17:] for batch in wanted]

    @pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
    def test_a_batch_that_takes_long_is_left_alone(
        self, open_embedded: OpenStore, reactor: Reactor, codec: Compression, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if codec is Compression.NONE:
            monkeypatch.setattr(rules, "MAX_RECORDS", 2)
        else:
            monkeypatch.setattr(rules, "MAX_BYTES", 100)
        store = open_embedded()
        store.log.configure(1, Cleanup(DEFAULTS))
        large = encode([Record(i, 0, b"a", bytes(100)) for i in range(3)], compression=codec)
        reactor.wait(*(store.log.append(1, batch, now_ms=0) for batch in (large, one(b"a", b"new"))))
        fill(store, reactor)
        found = stored(store)
        assert [(record.offset, record.key) for record in found[:4]] == [(i, b"a") for i in range(4)]

    def test_records_without_a_key_go(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded()
        store.log.configure(1, Cleanup(DEFAULTS))
        reactor.result(store.log.append(1, encode([Record(0, 0, None, b"")]), now_ms=0))
        fill(store, reactor)
        assert {record.key for record in stored(store)} == {b"filler"}

    def test_the_last_batch_of_a_producer_stays_without_its_records(
        self, open_embedded: OpenStore, reactor: Reactor
    ) -> None:
        store = open_embedded()
        store.log.configure(1, Cleanup(DEFAULTS))
        for sequence in range(40):
            batch = one(b"k", b"", producer_id=3, producer_epoch=0, base_sequence=sequence)
            reactor.result(store.log.append(1, batch, now_ms=0))
        reactor.result(store.log.append(1, one(b"k", b"last"), now_ms=0))
        fill(store, reactor)
        found = [decode_header(batch) for batch in stored_batches(store)]
        of_producer = [header for header in found if header.producer_id == 3]
        assert [(h.base_offset, h.base_sequence, h.records_count) for h in of_producer] == [(39, 39, 0)]
        known = store.log.producers(1).get(3)
        assert known is not None
        assert [sent.base_sequence for sent in known.batches] == [35, 36, 37, 38, 39]


class TestSteps:
    def test_are_bounded_and_appends_come_between_them(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(compaction, "STEP_BYTES", 1000)
        monkeypatch.setattr(writes, "CHUNK_BYTES", 300)
        monkeypatch.setattr(compaction, "CHUNK_BYTES", 300)
        store = open_embedded()
        for number in range(100):
            reactor.result(store.log.append(1, one(b"%d" % (number % 60), bytes(100)), now_ms=0))
        read: list[int] = []
        happened: list[str] = []
        apply_all(store, reactor)
        arrived, released = Event(), Event()
        next_chunks, step, replace = _Compacting._next_chunks, Compactor.step, _Compacting._put
        put = Applier._put

        def noted_chunks(self: _Compacting, offset: int) -> Any:
            found = next_chunks(self, offset)
            read.append(sum(len(chunk.batches) for chunk in found))
            return found

        def noted_step(self: Compactor) -> Any:
            happened.append("step")
            arrived.set()
            assert released.wait(PATIENCE_S)
            return step(self)

        def noted_replace(self: _Compacting, transaction: Any) -> None:
            happened.append("replace")
            replace(self, transaction)

        def noted_put(self: Applier, *args: Any) -> None:
            happened.append("append")
            put(self, *args)

        monkeypatch.setattr(_Compacting, "_next_chunks", noted_chunks)
        monkeypatch.setattr(Compactor, "step", noted_step)
        monkeypatch.setattr(_Compacting, "_put", noted_replace)
        monkeypatch.setattr(Applier, "_put", noted_put)
        store.log.configure(1, Cleanup(DEFAULTS))
        reactor.result(store.log.append(1, one(b"k", b""), now_ms=0))
        assert arrived.wait(PATIENCE_S)
        append = store.log.append(2, one(b"k", b""), now_ms=0)
        released.set()
        reactor.result(append)
        await_passes(store, reactor)
        assert happened[:4] == ["append", "step", "append", "step"]
        assert sum(event == "step" for event in happened) > 20
        assert max(read) <= 1000
        assert max(len(steps.split()) for steps in " ".join(happened).split("step")) <= 5

    def test_a_partition_that_is_deleted_stays_deleted(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(compaction, "STEP_BYTES", 1)
        arrived, released = Event(), Event()
        take, forget = _Compacting._take, Compactor.forget
        forgotten: list[tuple[int, bool]] = []

        def held(self: _Compacting, *args: Any) -> None:
            take(self, *args)
            arrived.set()
            assert released.wait(PATIENCE_S)

        def noted(self: Compactor, partition_no: int) -> None:
            forget(self, partition_no)
            forgotten.append((partition_no, self.due))

        monkeypatch.setattr(_Compacting, "_take", held)
        monkeypatch.setattr(Compactor, "forget", noted)
        store = open_embedded()
        store.log.configure(1, Cleanup(DEFAULTS))
        for number in range(10):
            reactor.result(store.log.append(1, one(b"%d" % number, b""), now_ms=0))
        assert arrived.wait(PATIENCE_S)  # records were read, and will be written
        store.log.delete(1)
        store.log.configure(2, Cleanup(DEFAULTS))
        appends = [store.log.append(2, one(b"k", b""), now_ms=0) for _ in range(10)]
        released.set()
        reactor.wait(*appends)
        await_passes(store, reactor)
        reactor.result(store.close())
        assert forgotten == [(1, False)]
        environment = open_embedded()._environment
        with environment.read("log") as transaction:
            assert {bytes(key[:4]) for key in transaction.cursor().iternext(values=False)} == {b"\0\0\0\2"}

    def test_a_failure_ends_the_pass_and_nothing_else(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_embedded()

        def failing(*args: Any) -> None:
            raise StorageError("EIO")

        with monkeypatch.context() as broken:
            broken.setattr(_Compacting, "_replace", failing)
            store.log.configure(1, Cleanup(DEFAULTS))
            for number in range(10):
                reactor.result(store.log.append(1, one(b"k", b"%d" % number), now_ms=0))
            await_passes(store, reactor)
            assert len(stored(store)) == 10
        fill(store, reactor)
        assert [record.value for record in stored(store) if record.key == b"k"] == [b"9"]


class TestJournal:
    def test_loads_the_same_before_and_after(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded()
        journal = LogJournal(store.log, [1])
        model: dict[bytes, bytes] = {}
        for number in range(400):
            key, value = b"%d" % (number % 23), None if number % 7 == 0 else b"%d" % number
            reactor.result(journal.append(0, [(key, value), (b"group", b"%d" % number)], number))
            model[b"group"] = b"%d" % number
            if value is None:
                model.pop(key, None)
            else:
                model[key] = value
        before = entries(journal)
        store.log.configure(1, Cleanup(DEFAULTS))
        reactor.result(journal.append(0, [(b"group", b"last")], 400))
        await_passes(store, reactor)
        after = entries(journal)
        assert len(before) == 800
        assert len(after) < 50
        assert replayed(before) == model
        assert replayed(after) == model | {b"group": b"last"}


def entries(journal: LogJournal) -> list[tuple[bytes, bytes | None]]:
    return [entry for batch in journal.load(0) if isinstance(batch, JournalBatch) for entry in batch.records]


def replayed(found: list[tuple[bytes, bytes | None]]) -> dict[bytes, bytes]:
    values = dict(found)
    return {key: value for key, value in values.items() if value is not None}


class TestKill:
    @pytest.mark.parametrize("after", [1, 2, 3, 7])
    def test_after_any_transaction_the_log_is_right(
        self, tmp_path: Path, open_embedded: OpenStore, reactor: Reactor, after: int
    ) -> None:
        done = subprocess.run(
            [sys.executable, "-c", KILLED, tmp_path / "data", str(after)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        acknowledged = int(done.stdout.splitlines()[-1])
        store = open_embedded()
        end = store.log.offsets(1).high_watermark
        assert end > acknowledged
        self.check(store, end)
        assert len(stored(store)) < end

        store.log.configure(1, Cleanup(DEFAULTS))
        for offset in range(end, end + 100):
            reactor.result(store.log.append(1, one(*expected(offset)), now_ms=0))
        await_passes(store, reactor)
        self.check(store, end + 100)
        assert len(stored(store)) < 200

    def check(self, store: EmbeddedStore, end: int) -> None:
        found = stored(store)
        assert [(record.key, record.value) for record in found] == [expected(r.offset) for r in found]
        assert last_values(found) == dict(expected(offset) for offset in range(max(0, end - 50), end))


def expected(offset: int) -> tuple[bytes, bytes]:
    return b"%d" % (offset % 50), b"%d " % offset + bytes(100)


KILLED = """
import os, signal, sys
from kshim.storage.embedded import EmbeddedStore, applier, compaction, log, writes
from kshim.storage.embedded.environment import Environment
from tests.storage.reactor import Reactor
from kshim.storage.interfaces import Cleanup
from tests.storage.test_compaction import DEFAULTS, expected, one

log.MIN_DIRTY_RECORDS = 100
applier.PAUSES = applier.APPLY_S = 0
writes.CHUNK_BYTES = 1
compaction.CHUNK_BYTES = 1000
compaction.STEP_CHUNKS = 20
left = int(sys.argv[2])
write = Environment.write

def counted(self, change, **options):
    global left
    write(self, change, **options)
    left -= change.__qualname__.startswith("_Compacting")
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

Environment.write = counted
reactor = Reactor()
store = EmbeddedStore(sys.argv[1], reactor, sync=False)
store.open()
store.log.configure(1, Cleanup(DEFAULTS))
offset = 0
while True:
    reactor.result(store.log.append(1, one(*expected(offset)), now_ms=0))
    print(offset, flush=True)
    while reactor.has_calls:
        reactor.turn()
    offset += 1
"""


# ---- model

keys = st.sampled_from([b"a", b"b", b"c", b"d"])
some_records = st.lists(
    st.tuples(keys, st.none() | st.binary(max_size=3), st.integers(0, 50)), min_size=1, max_size=5
)
appends = st.tuples(
    st.just("append"),
    st.lists(
        st.tuples(
            some_records,
            st.sampled_from([Compression.NONE, Compression.NONE, Compression.LZ4]),
            st.sampled_from([-1, -1, 1, 2]),
        ),
        min_size=1,
        max_size=3,
    ),
)
steps = st.lists(
    st.one_of(
        appends,
        appends,
        appends,
        st.tuples(st.just("settle")),
        st.tuples(st.just("reopen")),
        st.tuples(st.just("sleep"), st.sampled_from([1, DAY_MS // 2, DAY_MS])),
        st.tuples(st.just("fail")),
    ),
    max_size=40,
)


@dataclass
class Run:
    """A compacted partition and the list of all that was appended to it."""

    data_dir: Path
    reactor: Reactor = field(default_factory=Reactor)
    appended: list[Record] = field(default_factory=list)
    sent: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    unsettled: list[Any] = field(default_factory=list)
    now_ms: int = 0

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        self.store = EmbeddedStore(self.data_dir, self.reactor, sync=False)
        self.store.open()
        self.store.log.configure(1, Cleanup(DEFAULTS))

    def append(self, shapes: list[tuple[list[tuple[bytes, bytes | None, int]], Compression, int]]) -> None:
        joined = b""
        for rows, compression, producer_id in shapes:
            base, sequence = len(self.appended), -1
            if producer_id >= 0:
                sent = self.sent.setdefault(producer_id, [])
                sequence = len(sent)
                sent.append((base, sequence))
            some = [Record(n, ms, key, value) for n, (key, value, ms) in enumerate(rows)]
            joined += encode(
                some,
                compression=compression,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequence,
            )
            self.appended += [record._replace(offset=base + record.offset) for record in some]
        self.unsettled.append(self.store.log.append(1, joined, now_ms=self.now_ms))

    def settle(self) -> None:
        unsettled, self.unsettled = self.unsettled, []
        assert not [result for result in self.reactor.wait(*unsettled) if isinstance(result, Exception)]
        await_passes(self.store, self.reactor)
        self.check()

    def reopen(self) -> None:
        """Reopen the store in the middle of its work."""
        self.reactor.result(self.store.close())
        self.open()

    def sleep(self, ms: int) -> None:
        self.now_ms += ms

    def fail(self) -> None:
        self.settle()
        with patch.object(Ahead, "append", side_effect=OSError(errno.EIO, "EIO")):
            (result,) = self.reactor.wait(self.store.log.append(1, one(b"a", b"lost"), now_ms=0))
        assert isinstance(result, StorageError)
        await_recovery(self.store, self.reactor)

    def check(self) -> None:
        store, found = self.store, stored(self.store)
        end = len(self.appended)
        assert store.log.offsets(1) == Offsets(0, end, end, end)
        assert found == [self.appended[record.offset] for record in found]
        assert all(before.offset < after.offset for before, after in pairwise(found))
        assert last_values(found) == last_values(self.appended)
        self.check_what_went(found)
        self.check_reads(found)
        self.check_largest_timestamps(found)
        for time in range(-1, 52):
            since = (TimestampOffset(r.timestamp_ms, r.offset, 0) for r in found if r.timestamp_ms >= time)
            assert find(store.log.offset_for_time(1, time)) == next(since, None)
        largest = max((record.timestamp_ms for record in found), default=52)
        assert find(store.log.max_timestamp(1)) == find(store.log.offset_for_time(1, largest))

    def check_what_went(self, found: list[Record]) -> None:
        """Only records with a successor went, and tombstones after a day; in the compacted part, all of
        those."""
        left = {record.offset for record in found}
        last = {record.key: record.offset for record in self.appended}
        for record in self.appended:
            if record.offset not in left and last[record.key] == record.offset:
                assert record.value is None
                assert self.now_ms >= DAY_MS
        compacted_to = self.store.log._partitions[1].progress.end if self.appended else 0
        clean = [record.key for record in found if record.offset < compacted_to]
        assert len(clean) == len(set(clean))
        headers = [decode_header(batch) for batch in stored_batches(self.store)]
        for producer_id, sent in self.sent.items():
            kept = [(h.base_offset, h.base_sequence) for h in headers if h.producer_id == producer_id]
            assert kept[-1:] == sent[-1:]
        assert all(self.is_needed(header) for header in headers if header.base_offset < compacted_to)

    def is_needed(self, header: RecordBatchHeader) -> bool:
        return bool(header.records_count) or header.producer_id >= 0

    def check_largest_timestamps(self, found: list[Record]) -> None:
        """The chunks' largest timestamps never fall, and are never less than those of their records."""
        rows = largest_timestamps(self.store)
        assert [so_far for _, so_far in rows] == sorted(so_far for _, so_far in rows)
        for last_offset, so_far in rows:
            assert all(r.timestamp_ms <= so_far for r in found if r.offset <= last_offset)

    def check_reads(self, found: list[Record]) -> None:
        """A read from any offset finds the next record, and reading one batch at a time reaches the end."""
        for offset in range(len(self.appended)):
            position, read = offset, []
            while not read and (data := self.store.log.read(1, position, 1)):
                (batch,) = batches(data)
                position = decode_header(batch).next_offset
                read = [record for record in records(batch) if record.offset >= offset]
            assert read[:1] == [record for record in found if record.offset >= offset][:1]


@settings(deadline=None, max_examples=60)
@given(steps=steps)
def test_model(data_dirs: Iterator[Path], steps: list[tuple[Any, ...]]) -> None:
    with (
        patch.object(log, "MIN_DIRTY_RECORDS", 4),
        patch.object(applier, "PAUSES", 0),
        patch.object(compaction, "STEP_BYTES", 200),
        patch.object(compaction, "STEP_CHUNKS", 3),
        patch.object(compaction, "CHUNK_BYTES", 400),
        patch.object(writes, "CHUNK_BYTES", 300),
        patch.object(rules, "MAX_KEYS", 3),
    ):
        run = Run(next(data_dirs))
        try:
            for name, *arguments in steps:
                getattr(run, name)(*arguments)
            run.settle()
        finally:
            run.reactor.result(run.store.close())
