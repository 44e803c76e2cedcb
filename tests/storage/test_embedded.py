"""Traits of the store on disk alone: it is durable, has one owner, and can be full."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import lmdb
import pytest

from kshim.storage.embedded import EmbeddedStore, applier, environment, freeing, writes
from kshim.storage.embedded.applier import Applier
from kshim.storage.embedded.deletion import Deletion
from kshim.storage.interfaces import (
    Appended,
    DataDirLocked,
    Offsets,
    StorageError,
    StorageFull,
    TimestampOffset,
)
from tests.storage.embedded import (
    OpenStore,
    apply_all,
    batch_of,
    entries,
    fail_transactions,
    hold_writer,
    keys,
    when_deleted,
)
from tests.storage.reactor import PATIENCE_S, Reactor
from tests.storage.searches import find


class TestReopening:
    def test_everything_is_there_again(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded()
        appends = [
            store.log.append(number % 3, batch_of(number), leader_epoch=4, now_ms=0) for number in range(30)
        ]
        reactor.wait(*appends, store.metadata.put({b"name": b"value"}))
        reactor.result(store.close())

        store = open_embedded()
        assert [store.log.offsets(partition_no) for partition_no in range(4)] == [
            *[Offsets(0, 10, 10, 10)] * 3,
            Offsets(0, 0, 0, 0),
        ]
        assert keys(store, 1) == [b"%d" % number for number in range(1, 30, 3)]
        assert find(store.log.max_timestamp(2)) == TimestampOffset(1029, 9, 4)
        assert store.metadata.get(b"name") == b"value"
        assert reactor.result(store.log.append(1, batch_of(99), now_ms=0)) == Appended(10, 0, -1)
        assert find(store.log.offset_for_time(1, 1029)) == TimestampOffset(1099, 10, 0)

    def test_the_largest_timestamp_so_far_outlives_a_restart(
        self, open_embedded: OpenStore, reactor: Reactor
    ) -> None:
        store = open_embedded()
        reactor.result(store.log.append(1, batch_of(500), now_ms=0))
        reactor.result(store.close())
        store = open_embedded()
        reactor.result(store.log.append(1, batch_of(3), now_ms=0))
        assert find(store.log.max_timestamp(1)) == TimestampOffset(1500, 0, 0)

    def test_close_finishes_what_is_queued(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded()
        appends = [store.log.append(1, batch_of(number), now_ms=0) for number in range(100)]
        closed = store.close()
        assert not closed.called
        results = reactor.wait(*appends, closed)
        assert [result.base_offset for result in results[:-1]] == list(range(100))
        assert keys(open_embedded(), 1) == [b"%d" % number for number in range(100)]

    def test_after_close_writes_fail_and_the_directory_is_free(
        self, open_embedded: OpenStore, reactor: Reactor
    ) -> None:
        store = open_embedded()
        log, metadata = store.log, store.metadata
        closed = store.close()
        late = reactor.wait(log.append(1, batch_of(1), now_ms=0), metadata.put({b"a": b"b"}), closed)
        assert [str(error) for error in late[:2]] == ["the store is closed"] * 2
        assert reactor.result(store.close()) is None
        assert open_embedded().log.offsets(1) == Offsets(0, 0, 0, 0)


class TestGroupCommit:
    def test_what_is_queued_together_is_one_transaction(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_embedded(sync=True)
        release = hold_writer(store, reactor, monkeypatch)
        monkeypatch.setattr(writes, "CHUNK_BYTES", 10_000)
        appends = [store.log.append(number % 2, batch_of(number), now_ms=0) for number in range(20)]
        appends += [store.log.append(7, batch_of(20), now_ms=0)]
        fired: list[int] = []
        for index, append in enumerate(appends):
            append.addCallback(lambda _, index=index: fired.append(index))
        watched: list[Offsets] = []
        store.log.watch(0, lambda: watched.append(store.log.offsets(0)))
        assert store.log.offsets(0) == Offsets(0, 0, 10, 0)
        assert store.log.read(0, 0, 1000) == b""
        release()
        reactor.result(appends[0])
        assert fired == list(range(21))
        assert watched == [Offsets(0, 10, 10, 10)]
        apply_all(store, reactor)
        assert entries(store) == 3

    def test_a_chunk_does_not_grow_beyond_its_bound(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_embedded(sync=True)
        release = hold_writer(store, reactor, monkeypatch)
        monkeypatch.setattr(writes, "CHUNK_BYTES", 1000)
        appends = [store.log.append(1, batch_of(number, 300), now_ms=0) for number in range(5)]
        appends += [
            store.log.append(1, batch_of(5, 5000), now_ms=0),
            store.log.append(1, batch_of(6), now_ms=0),
        ]
        release()
        reactor.wait(*appends)
        apply_all(store, reactor)
        assert entries(store) == 5
        assert keys(store, 1) == [b"%d" % number for number in range(7)]

    def test_high_watermark_is_what_the_reactor_was_told(
        self, open_embedded: OpenStore, reactor: Reactor
    ) -> None:
        store = open_embedded(sync=True)
        first = store.log.append(1, batch_of(0), now_ms=0)
        reactor.result(first)
        apply_all(store, reactor)
        second = store.log.append(1, batch_of(1), now_ms=0)
        reactor.await_call()  # durable, but the reactor does not know yet
        assert keys(store, 1) == [b"0"]
        assert find(store.log.max_timestamp(1)) == TimestampOffset(1000, 0, 0)
        assert find(store.log.offset_for_time(1, 1001)) is None
        reactor.result(second)
        assert keys(store, 1) == [b"0", b"1"]


class TestRoom:
    LIMIT = 2_000_000

    def fill(self, store: EmbeddedStore, reactor: Reactor, partition_no: int = 1) -> int:
        """Append until the store is full; returns the number of appends."""
        count = 0
        while True:
            (result,) = reactor.wait(store.log.append(partition_no, batch_of(count, 50_000), now_ms=0))
            if isinstance(result, BaseException):
                assert isinstance(result, StorageFull), result
                return count
            apply_all(store, reactor)
            count += 1

    def test_full_store_refuses_appends_and_keeps_the_others(
        self, open_embedded: OpenStore, reactor: Reactor
    ) -> None:
        store = open_embedded(max_bytes=self.LIMIT)
        count = self.fill(store, reactor)
        assert 25 <= count <= 38
        assert store.log.offsets(1) == Offsets(0, count, count, count)
        with pytest.raises(StorageFull, match="has reached its limit of 2000000 bytes"):
            reactor.result(store.log.append(2, batch_of(0, 100_000), now_ms=0))
        assert keys(store, 1) == [b"%d" % number for number in range(count)]

    def test_there_is_room_again_after_a_delete(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_embedded(max_bytes=self.LIMIT)
        count = self.fill(store, reactor)
        deleted = when_deleted(store, monkeypatch)
        store.log.delete(1)
        deleted()
        assert self.fill(store, reactor, 2) > count * 3 // 4  # LMDB needs adjacent pages, and not all are
        reactor.result(store.close())
        assert (store._data_dir / "data.mdb").stat().st_size <= self.LIMIT + environment.DELETION_BYTES

    def test_map_grows_while_there_is_room(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(environment, "FIRST_MAP_BYTES", 200_000)
        store = open_embedded()
        for number in range(100):
            reactor.result(store.log.append(1, batch_of(number, 50_000), now_ms=0))
        assert keys(store, 1, max_bytes=300_000) == [b"%d" % number for number in range(100)]
        reactor.result(store.close())
        assert len(keys(open_embedded(), 1)) == 100

    def test_disk_that_is_full(self, tmp_path: Path) -> None:
        """A process that may not write large files: appends fail, and work again once it may."""
        done = subprocess.run(
            [sys.executable, "-c", FULL_DISK, tmp_path / "data"], capture_output=True, text=True, timeout=60
        )
        assert done.stdout.splitlines() == ["full", "consistent", "works again"], done.stderr


FULL_DISK = """
import resource, signal, sys
from kshim.storage.embedded import EmbeddedStore
from kshim.storage.interfaces import Offsets, StorageError
from schemas.records.batch import Record, encode
from tests.storage.reactor import Reactor

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
reactor = Reactor()
store = EmbeddedStore(sys.argv[1], reactor)
store.open()
batch = encode([Record(0, 1, None, bytes(100_000))])
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
count = 0
while not isinstance(result := reactor.wait(store.log.append(1, batch, now_ms=0))[0], Exception):
    count += 1
# No StorageFull: the disk itself has room, so the sync may have failed, and nothing is read meanwhile.
print("full" if isinstance(result, StorageError) and count >= 5 else repr((result, count)))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
while isinstance(result := reactor.wait(store.log.append(1, batch, now_ms=0))[0], StorageError):
    reactor.turn()  # until the log goes on
read = sum(1 for offset in range(count + 1) if len(store.log.read(1, offset, 1)) == len(batch))
print("consistent" if store.log.offsets(1) == Offsets(0, *[count + 1] * 3) and read == count + 1 else read)
print("works again" if result.base_offset == count else result)
reactor.result(store.close())
"""


class TestKill:
    def test_what_was_acknowledged_is_there(self, tmp_path: Path, open_embedded: OpenStore) -> None:
        writer = subprocess.Popen(
            [sys.executable, "-c", ENDLESS_WRITER, tmp_path / "data"], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(200)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += [
            int(line) for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")
        ]
        writer.stdout.close()
        assert writer.wait() == -signal.SIGKILL

        found = keys(open_embedded(), 1)
        assert found == [b"%d" % number for number in range(len(found))]
        assert acknowledged[-1] < len(found)


ENDLESS_WRITER = """
import sys
from kshim.storage.embedded import EmbeddedStore
from schemas.records.batch import Record, encode
from tests.storage.reactor import Reactor

reactor = Reactor()
store = EmbeddedStore(sys.argv[1], reactor)
store.open()

def acknowledged(appended):
    print(appended.base_offset, flush=True)
    append()

def append():
    batch = encode([Record(0, 1, b"%d" % append.number, bytes(5_000))])
    append.number += 1
    store.log.append(1, batch, now_ms=0).addCallback(acknowledged)

append.number = 0
for _ in range(8):
    append()
while True:
    reactor.turn()
"""


class TestDeletion:
    def test_space_is_freed_in_steps(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(freeing, "STEP_CHUNKS", 4)
        store = open_embedded()
        for number in range(10):
            reactor.wait(*(store.log.append(no, batch_of(number), now_ms=0) for no in (0, 1, 2)))
        deleted = when_deleted(store, monkeypatch)
        store.log.delete(1)
        assert deleted() == 4
        assert entries(store) == 20
        assert [len(keys(store, no)) for no in (0, 1, 2)] == [10, 0, 10]

    def test_appends_go_on_between_the_steps(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(freeing, "STEP_CHUNKS", 1)
        store = open_embedded()
        for number in range(3):
            reactor.result(store.log.append(1, batch_of(number), now_ms=0))
        deleted = when_deleted(store, monkeypatch)
        arrived, released = Event(), Event()
        transactions: list[str] = []
        step, put = Deletion.step, Applier._put

        def noted_step(self: Deletion) -> None:
            transactions.append("step")
            arrived.set()
            assert released.wait(PATIENCE_S)
            step(self)

        def noted_put(self: Applier, *args: Any) -> None:
            transactions.append("append")
            put(self, *args)

        apply_all(store, reactor)
        store.log.delete(1)
        apply_all(store, reactor)
        monkeypatch.setattr(Deletion, "step", noted_step)
        monkeypatch.setattr(Applier, "_put", noted_put)
        assert arrived.wait(PATIENCE_S)
        append = store.log.append(2, batch_of(0), now_ms=0)
        released.set()
        reactor.result(append)
        deleted()
        assert "step append step" in " ".join(transactions)

    def test_goes_on_after_a_restart(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(freeing, "STEP_CHUNKS", 1)
        store = open_embedded()
        for number in range(10):
            reactor.result(store.log.append(1, batch_of(number), now_ms=0))
        with monkeypatch.context() as slow:
            slow.setattr(Deletion, "due", False)
            store.log.delete(7)
            store.log.delete(1)
            reactor.result(store.close())
        deleted = when_deleted(store, monkeypatch)
        store = open_embedded()
        assert store.log.offsets(1) == Offsets(0, 0, 0, 0)
        with pytest.raises(StorageError, match="partition 1 was deleted"):
            reactor.result(store.log.append(1, batch_of(0), now_ms=0))
        assert deleted() == 12  # ten chunks, and the end of each partition
        assert entries(store) == 0
        reactor.result(store.close())
        assert reactor.result(open_embedded().log.append(1, batch_of(0), now_ms=0)) == Appended(0, 0, -1)

    def test_is_noted_before_it_begins(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Else a kill would leave the space taken for ever."""

        def step(_: Deletion) -> None:
            raise StorageError("not yet")

        monkeypatch.setattr(Deletion, "step", step)
        store = open_embedded()
        store.log.delete(7)
        apply_all(store, reactor)
        with store._environment.read("deleted") as transaction:
            assert [bytes(key) for key, _ in transaction.cursor()] == [bytes([0, 0, 0, 7])]

    def test_is_tried_again_when_the_disk_works_again(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(applier, "RETRY_S", 0.01)
        store = open_embedded()
        reactor.result(store.log.append(1, batch_of(0), now_ms=0))
        deleted = when_deleted(store, monkeypatch)
        apply_all(store, reactor)
        with monkeypatch.context() as broken:
            fail_transactions(broken, StorageError("EIO"))
            store.log.delete(1)
            apply_all(store, reactor)
            assert entries(store) == 1
        deleted()
        assert entries(store) == 0


class TestDataDirectory:
    def test_belongs_to_one_server(self, open_embedded: OpenStore, tmp_path: Path, reactor: Reactor) -> None:
        open_embedded()
        with pytest.raises(DataDirLocked, match=f"in use by process {os.getpid()}$"):
            EmbeddedStore(tmp_path / "data", reactor).open()

    def test_is_free_when_its_server_was_killed(self, tmp_path: Path, open_embedded: OpenStore) -> None:
        code = "import os, signal, sys; from tests.storage.test_embedded import *; r = Reactor()"
        code += "; EmbeddedStore(sys.argv[1], r).open(); print('open', flush=True); signal.pause()"
        holder = subprocess.Popen([sys.executable, "-c", code, tmp_path / "data"], stdout=subprocess.PIPE)
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(DataDirLocked, match=f"in use by process {holder.pid}$"):
            open_embedded()
        holder.kill()
        holder.wait()
        holder.stdout.close()
        open_embedded()

    def test_is_for_its_user_alone(self, open_embedded: OpenStore, tmp_path: Path, reactor: Reactor) -> None:
        store, place = open_embedded(tmp_path / "a"), tmp_path / "a"
        assert place.stat().st_mode & 0o777 == 0o700
        files = list(place.iterdir())
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
        reactor.result(store.close())
        (place / "data.mdb").chmod(0o644)
        open_embedded(tmp_path / "a")
        assert (place / "data.mdb").stat().st_mode & 0o777 == 0o600

    def test_is_made_with_its_parents(self, open_embedded: OpenStore, tmp_path: Path) -> None:
        open_embedded(tmp_path / "a" / "b")
        assert {path.name for path in (tmp_path / "a" / "b").iterdir()} == {
            "data.mdb",
            "lock.mdb",
            "kshim.lock",
        }

    @pytest.mark.parametrize("content", [b"not a database", bytes(8192), os.urandom(8192)])
    def test_file_that_is_no_database(self, open_embedded: OpenStore, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "data.mdb").write_bytes(content)
        with pytest.raises(StorageError) as raised:
            open_embedded(tmp_path)
        assert str(tmp_path) in str(raised.value)
        assert "\n" not in str(raised.value)
        with pytest.raises(StorageError) as again:  # and the lock was released
            open_embedded(tmp_path)
        assert not isinstance(again.value, DataDirLocked)

    def test_database_of_someone_else(self, open_embedded: OpenStore, tmp_path: Path) -> None:
        with lmdb.open(str(tmp_path)) as other, other.begin(write=True) as transaction:
            transaction.put(b"their", b"data")
        with pytest.raises(StorageError, match="holds data that is not kshim's"):
            open_embedded(tmp_path)
        with lmdb.open(str(tmp_path)) as other, other.begin() as transaction:
            assert list(transaction.cursor()) == [(b"their", b"data")]

    def test_format_of_another_version(
        self, open_embedded: OpenStore, tmp_path: Path, reactor: Reactor
    ) -> None:
        reactor.result(open_embedded(tmp_path).close())
        with lmdb.open(str(tmp_path), max_dbs=8) as other, other.begin(write=True) as transaction:
            transaction.put(b"format", b"3", db=other.open_db(b"kshim", transaction))
        with pytest.raises(StorageError, match="holds data of format 3; need format 2"):
            open_embedded(tmp_path)

    def test_of_a_version_without_a_log_is_taken_over(
        self, open_embedded: OpenStore, tmp_path: Path, reactor: Reactor
    ) -> None:
        """Its databases are the same. An earlier kshim refuses the directory from then on."""
        store = open_embedded(tmp_path)
        reactor.result(store.log.append(1, batch_of(0), now_ms=0))
        reactor.result(store.close())
        with lmdb.open(str(tmp_path), max_dbs=8) as other, other.begin(write=True) as transaction:
            own = other.open_db(b"kshim", transaction)
            transaction.put(b"format", b"1", db=own)
            transaction.delete(b"applied", db=own)
        store = open_embedded(tmp_path)
        assert keys(store, 1) == [b"0"]
        reactor.result(store.log.append(1, batch_of(1), now_ms=0))
        reactor.result(store.close())
        with lmdb.open(str(tmp_path), max_dbs=8) as other, other.begin() as transaction:
            assert transaction.get(b"format", db=other.open_db(b"kshim", transaction)) == b"2"
        assert keys(open_embedded(tmp_path), 1) == [b"0", b"1"]

    def test_file_in_the_way(self, open_embedded: OpenStore, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        for path in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(StorageError, match=f"^cannot use data directory {path}: "):
                open_embedded(path)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_directory_that_cannot_be_written(self, open_embedded: OpenStore, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        with pytest.raises(StorageError, match="Permission denied"):
            open_embedded(tmp_path / "data")


def test_sizes_begin_at_the_batch_that_holds_the_offset(open_embedded: OpenStore, reactor: Reactor) -> None:
    """Also if it is stored together with batches before it."""
    store = open_embedded()
    one, two, three = (batch_of(number, size) for number, size in ((0, 10), (1, 20), (2, 40)))
    reactor.result(store.log.append(1, one + two + three, now_ms=0))
    for _ in range(2):
        assert store.log.sizes(1, 1) == [(2, len(two) + len(three))]
        assert store.log.sizes(1, 2) == [(2, len(three))]
        apply_all(store, reactor)
