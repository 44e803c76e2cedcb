"""The writer: when it answers its writes, and what it does when the disk fails."""

import errno
import os
import shutil
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import lmdb
import pytest

from kshim.storage.embedded import EmbeddedStore, applier
from kshim.storage.embedded import writer as writer_module
from kshim.storage.embedded.ahead import Ahead
from kshim.storage.embedded.applier import Applier
from kshim.storage.embedded.environment import Environment
from kshim.storage.embedded.writer import CALM_S, SAYS_AGAIN_S
from kshim.storage.embedded.writes import Put
from kshim.storage.interfaces import Appended, Offsets, StorageError, StorageFull
from tests.storage.embedded import (
    OpenStore,
    apply_all,
    await_recovery,
    batch_of,
    entries,
    fail_transactions,
    fail_writes,
    hold_writer,
    keys,
)
from tests.storage.reactor import PATIENCE_S, Reactor

EIO = OSError(errno.EIO, os.strerror(errno.EIO))


class Disk:
    """Records the calls to the log, and holds each sync until go()."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self._going: SimpleQueue[Exception | None] = SimpleQueue()
        self._arrived: SimpleQueue[None] = SimpleQueue()
        append, sync = Ahead.append, Ahead.sync

        def noted_append(ahead: Ahead, writes: Any) -> None:
            self.calls.append(f"append {len(writes)}")
            append(ahead, writes)

        def held_sync(ahead: Ahead) -> None:
            self.calls.append("sync")
            self._arrived.put(None)
            if (error := self._going.get(timeout=PATIENCE_S)) is not None:
                raise error
            sync(ahead)

        monkeypatch.setattr(Ahead, "append", noted_append)
        monkeypatch.setattr(Ahead, "sync", held_sync)

    def await_sync(self) -> None:
        self._arrived.get(timeout=PATIENCE_S)

    def go(self, error: Exception | None = None) -> None:
        """Wait for the next sync, and let it return or fail."""
        self.await_sync()
        self._going.put(error)

    def release(self, error: Exception | None = None) -> None:
        self._going.put(error)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def killed(store: EmbeddedStore, tmp_path: Path) -> Path:
    """The data directory as a kill leaves it now."""
    copy = tmp_path / "killed"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(store._data_dir, copy)
    return copy


class TestDurability:
    """If commits are synced, a write is answered after one append and one sync that cover it."""

    def test_one_alone(self, open_embedded: OpenStore, reactor: Reactor, disk: Disk) -> None:
        append = open_embedded(sync=True).log.append(1, batch_of(0), now_ms=0)
        disk.await_sync()
        assert disk.calls == ["append 1", "sync"]
        assert not reactor.has_calls
        disk.release()
        assert reactor.result(append) == Appended(0, 0, -1)
        assert disk.calls == ["append 1", "sync"]

    def test_all_that_wait_share_one(self, open_embedded: OpenStore, reactor: Reactor, disk: Disk) -> None:
        store = open_embedded(sync=True)
        first = store.log.append(1, batch_of(0), now_ms=0)
        disk.await_sync()
        others = [store.log.append(number, batch_of(number), now_ms=0) for number in (1, 2, 1)]
        put = store.metadata.put({b"a": b"1"})
        disk.release()
        reactor.result(first)
        assert not any(other.called for other in others)
        disk.go()
        assert reactor.wait(*others, put) == [
            Appended(1, 0, -1),
            Appended(0, 0, -1),
            Appended(2, 0, -1),
            None,
        ]
        assert disk.calls == ["append 1", "sync", "append 4", "sync"]

    def test_commits_and_syncs_are_timed(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded(sync=True)
        reactor.result(store.log.append(1, batch_of(0), now_ms=0))
        queued, durations, _ = store.activity()
        times = {what: found.measured() for what, found in durations.items()}
        assert queued == 0
        assert times["commit"].counts[-1] == times["sync"].counts[-1] == 1
        assert times["commit"].sum_s >= times["sync"].sum_s > 0

    def test_without_syncs_a_write_is_answered_at_once(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """It is in the log, so a kill does not lose it."""
        monkeypatch.setattr(applier, "APPLY_S", 100)
        store = open_embedded()
        watched: list[Offsets] = []
        store.log.watch(1, lambda: watched.append(store.log.offsets(1)))
        appended = store.log.append(1, batch_of(0), now_ms=0)
        assert appended.called
        assert watched == [Offsets(0, 1, 1, 1)]
        assert store.metadata.put({b"a": b"1"}).called
        assert (keys(store, 1), store.metadata.get(b"a")) == ([b"0"], b"1")
        again = open_embedded(killed(store, tmp_path))
        assert (keys(again, 1), again.metadata.get(b"a")) == ([b"0"], b"1")
        assert list(again.metadata.items(b"")) == [(b"a", b"1")]

    def test_without_syncs_a_large_write_is_left_to_the_thread_and_the_order_stays(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(writer_module, "INLINE_BYTES", 1000)
        store = open_embedded()
        large = store.log.append(1, batch_of(0, 5000), now_ms=0)
        small = store.log.append(1, batch_of(1), now_ms=0)
        assert [each.called for each in (large, small)] == [False, False]
        assert reactor.wait(large, small) == [Appended(0, 0, -1), Appended(1, 0, -1)]
        assert store.log.append(1, batch_of(2), now_ms=0).called
        assert keys(store, 1) == [b"0", b"1", b"2"]

    @pytest.mark.parametrize("sync", [False, True])
    def test_what_lmdb_lacks_is_bounded(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch, sync: bool
    ) -> None:
        """Further writes wait until LMDB has taken some."""
        monkeypatch.setattr(writer_module, "BEHIND_BYTES", 1000)
        store = open_embedded(sync=sync)
        arrived, released, write = Event(), Event(), Environment.write

        def held(self: Environment, *args: Any, **options: Any) -> bool:
            arrived.set()
            assert released.wait(PATIENCE_S)
            return write(self, *args, **options)

        monkeypatch.setattr(Environment, "write", held)
        reactor.result(store.log.append(1, batch_of(0, 2000), now_ms=0))
        assert arrived.wait(PATIENCE_S)
        waiting = store.log.append(1, batch_of(1), now_ms=0)
        assert not waiting.called
        assert not reactor.has_calls
        released.set()
        assert reactor.result(waiting) == Appended(1, 0, -1)


class TestTrust:
    """The environment's account of a commit."""

    def test_only_a_commit_that_changes_a_page_syncs(self, tmp_path: Path) -> None:
        opened = Environment(tmp_path, sync=True, max_bytes=10**7)
        assert opened.write(lambda transaction: None) is False
        assert opened.write(lambda transaction: transaction.put(b"a", b"1", db=opened.meta) and None) is True
        assert opened.write(lambda transaction: transaction.delete(b"b", db=opened.meta) and None) is False
        opened.close()

    def test_after_a_failed_sync_the_file_is_opened_again(self, tmp_path: Path) -> None:
        opened = Environment(tmp_path, sync=True, max_bytes=10**7)
        opened.write(lambda transaction: transaction.put(b"a", b"1", db=opened.meta) and None)
        opened.is_trusted = False
        with pytest.raises(StorageError, match="a sync has failed"):
            opened.write(lambda transaction: None)
        with pytest.raises(StorageError, match="a sync has failed"), opened.read("meta"):
            pass
        with pytest.raises(StorageError, match="a sync has failed"):
            opened.sync()
        opened.reopen()
        with opened.read("meta") as transaction:
            assert bytes(transaction.get(b"a", b"")) == b"1"
        opened.close()

    def test_a_full_disk_fails_before_it_syncs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        opened = Environment(tmp_path, sync=True, max_bytes=10**7)
        for error, free_bytes, is_trusted in (
            (lmdb.DiskError("ENOSPC"), 10**6, True),
            (lmdb.DiskError("ENOSPC"), 10**9, False),  # the disk may have found that out while it synced
            (lmdb.Error(f"mdb_txn_commit: {os.strerror(errno.EDQUOT)}"), 10**9, True),
            (lmdb.Error("EIO"), 10**9, False),
            (lmdb.Error("EIO"), 0, False),
        ):
            monkeypatch.setattr(opened._room, "free_bytes", lambda free=free_bytes: free)
            transaction = SimpleNamespace(commit=Mock(side_effect=error))
            with pytest.raises(type(error)):
                opened._commit(transaction)
            assert opened.is_trusted is is_trusted
        opened.close()


def test_orders_and_chores_have_their_turn_while_writes_never_end(
    open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_embedded()
    reactor.result(store.log.append(1, batch_of(0), now_ms=0))
    apply_all(store, reactor)
    put_into_lmdb = Applier._apply

    def and_another_comes(self: Applier) -> StorageError | None:
        seq = self._writes[-1].seq
        error = put_into_lmdb(self)
        self.add([Put(changes={b"key": b"value"}, seq=seq + 1)])
        return error

    monkeypatch.setattr(Applier, "_apply", and_another_comes)
    store.log.delete(1)
    for _ in range(100):
        apply_all(store, reactor)
        if not entries(store):
            break
    assert entries(store) == 0
    monkeypatch.undo()


class TestFailure:
    def test_a_write_that_fails_takes_what_is_behind_it_along(
        self, open_embedded: OpenStore, reactor: Reactor, disk: Disk
    ) -> None:
        store = open_embedded(sync=True)
        first = store.log.append(1, batch_of(0), now_ms=0)
        disk.go()
        reactor.result(first)
        failing = store.log.append(1, batch_of(1), now_ms=0)
        disk.await_sync()
        behind = [store.log.append(1, batch_of(2), now_ms=0), store.log.append(2, batch_of(3), now_ms=0)]
        put = store.metadata.put({b"a": b"1"})
        disk.release(EIO)
        failed = reactor.wait(failing, *behind, put)
        assert {str(error) for error in failed} == {f"writing to {store._data_dir}: Input/output error"}
        assert {type(error) for error in failed} == {StorageError}
        assert store.log.offsets(1) == Offsets(0, 1, 1, 1)
        assert store.log.offsets(2) == Offsets(0, 0, 0, 0)
        assert store.metadata.get(b"a") is None
        await_recovery(store, reactor)
        again = store.log.append(1, batch_of(4), now_ms=0)
        disk.go()
        assert reactor.result(again) == Appended(1, 0, -1)
        assert keys(store, 1) == [b"0", b"4"]

    @pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
    def test_what_failed_does_not_come_back(
        self,
        open_embedded: OpenStore,
        reactor: Reactor,
        disk: Disk,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        code: int,
    ) -> None:
        """It may be whole in the log whose sync has failed, and stands in the way of what follows. A sync may
        be the first to find that the disk is full.
        """
        store = open_embedded(sync=True)
        failing = [store.log.append(1, batch_of(number), now_ms=0) for number in range(3)]
        disk.await_sync()
        files = {file: file.read_bytes() for file in store._data_dir.glob("ahead.*")}
        disk.release(OSError(code, os.strerror(code)))
        reactor.wait(*failing)
        await_recovery(store, reactor)
        monkeypatch.setattr(applier, "APPLY_S", 100)
        again = store.log.append(1, batch_of(7), now_ms=0)
        disk.go()
        reactor.result(again)
        copy = killed(store, tmp_path)
        for number, content in enumerate(files.values()):  # as if their removal were lost
            (copy / f"ahead.{9 + number}").write_bytes(content)
        monkeypatch.undo()
        assert files
        assert keys(open_embedded(copy), 1) == [b"7"]

    def test_until_the_log_goes_on_writes_are_refused(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It goes on when LMDB has all that was acknowledged."""
        monkeypatch.setattr(applier, "RETRY_S", 0.01)
        store = open_embedded()
        reactor.result(store.log.append(1, batch_of(0), now_ms=0))
        with monkeypatch.context() as broken:
            fail_transactions(broken, StorageError("EIO"))
            with monkeypatch.context() as also:
                fail_writes(also, EIO)
                (error,) = reactor.wait(store.log.append(1, batch_of(1), now_ms=0))
            for write in (
                lambda: store.log.append(1, batch_of(2), now_ms=0),
                lambda: store.metadata.put({b"a": b"1"}),
            ):
                assert reactor.wait(write()) == [error]
            assert store.activity().failure == "the disk fails: records and offsets are refused"
            assert keys(store, 1) == [b"0"]
        await_recovery(store, reactor)
        assert reactor.result(store.log.append(1, batch_of(3), now_ms=0)) == Appended(1, 0, -1)
        assert keys(store, 1) == [b"0", b"3"]

    @pytest.mark.parametrize("sync", [False, True])
    def test_an_append_from_within_the_failure_is_refused_too(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch, sync: bool
    ) -> None:
        store = open_embedded(sync=sync)
        outcome: list[Any] = []

        def retry(_: object) -> None:
            outcome.extend(reactor.wait(store.log.append(1, batch_of(2), now_ms=0)))

        with monkeypatch.context() as broken:
            fail_writes(broken, EIO)
            first = store.log.append(1, batch_of(0), now_ms=0).addErrback(retry)
            behind = store.log.append(1, batch_of(1), now_ms=0)
            assert isinstance(reactor.wait(first, behind)[1], StorageError)
        assert [type(each) for each in outcome] == [StorageError]
        await_recovery(store, reactor)
        assert reactor.result(store.log.append(1, batch_of(3), now_ms=0)) == Appended(0, 0, -1)
        assert keys(store, 1) == [b"3"]

    def test_if_lmdb_fails_nothing_acknowledged_is_lost(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The log has it until LMDB has it durably. Meanwhile nothing is read or written."""
        monkeypatch.setattr(applier, "RETRY_S", 0.01)
        store = open_embedded()
        fails = Event()
        fails.set()
        sync = Environment.sync

        def failing(self: Environment) -> None:
            if fails.is_set():
                self.is_trusted = False
                raise StorageError("EIO")
            sync(self)

        monkeypatch.setattr(Environment, "sync", failing)
        reactor.result(store.log.append(1, batch_of(0), now_ms=0))
        apply_all(store, reactor)
        (refused,) = reactor.wait(store.log.append(1, batch_of(1), now_ms=0))
        assert str(refused) == f"a sync has failed, and {store._data_dir} is not open again"
        fails.clear()
        await_recovery(store, reactor)
        apply_all(store, reactor)
        assert reactor.result(store.log.append(1, batch_of(2), now_ms=0)) == Appended(1, 0, -1)
        reactor.result(store.close())
        assert keys(open_embedded(), 1) == [b"0", b"2"]

    def test_a_failure_and_its_end_are_logged_once(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On a full disk small writes still succeed; neither these nor failures in between are logged."""
        told: list[str] = []
        for level in ("warn", "error"):
            monkeypatch.setattr(
                writer_module.logger, level, lambda line, **more: told.append(line.format(**more))
            )
        now = SimpleNamespace(s=10.0)
        monkeypatch.setattr(writer_module, "time", SimpleNamespace(monotonic=lambda: now.s))
        store = open_embedded()
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        for at_s, fails in ((10, True), (11, False), (12, True), (13, True), (17.5, False), (18.5, False)):
            now.s = at_s
            with monkeypatch.context() as broken:
                if fails:
                    fail_writes(broken, full)
                reactor.wait(store.log.append(1, batch_of(0), now_ms=0))
        assert told == [
            f"storage fails: no space left for {store._data_dir}: No space left on device",
            "storage works again",
        ]

    def test_why_writes_are_refused(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_embedded()
        environment = store._environment
        now = SimpleNamespace(s=100.0, has_room=False)
        monkeypatch.setattr(writer_module, "time", SimpleNamespace(monotonic=lambda: now.s))
        monkeypatch.setattr(environment, "has_room", lambda size: now.has_room)
        assert store.activity().failure == ""
        with monkeypatch.context() as broken:
            fail_writes(broken, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
            (error,) = reactor.wait(store.log.append(1, batch_of(0), now_ms=0))
        assert isinstance(error, StorageFull)
        now.s += CALM_S + 1
        assert store.activity().failure == "the disk is full: records and offsets are refused"
        now.has_room = True  # nobody has written meanwhile
        assert store.activity().failure == ""
        environment.is_trusted = False
        assert store.activity().failure == "the disk fails: records and offsets are refused"
        environment.is_trusted = True

    def test_a_full_disk_is_reported_before_anybody_writes(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_embedded()
        monkeypatch.setattr(store._environment, "room_bytes", lambda: 0)
        assert store.activity().failure == "the disk is full: records and offsets are refused"
        monkeypatch.undo()
        assert store.activity().failure == ""

    def test_the_log_says_again_and_again_that_the_disk_is_full(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_embedded()
        now = SimpleNamespace(s=100.0)
        monkeypatch.setattr(writer_module, "time", SimpleNamespace(monotonic=lambda: now.s))
        monkeypatch.setattr(store._environment, "room_bytes", lambda: 0)
        said = []
        monkeypatch.setattr(
            writer_module.logger, "error", lambda text, **names: said.append(text.format(**names))
        )
        for _ in range(5):
            store._writer._unasked_bytes = 0
            reactor.wait(store.log.append(1, batch_of(0), now_ms=0))
            now.s += SAYS_AGAIN_S / 2
        assert [each.partition(":")[0] for each in said] == [
            "storage fails",
            "storage fails for 60 s",
            "storage fails for 120 s",
        ]

    def test_the_unexpected_is_answered_too(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_embedded()
        fail_writes(monkeypatch, ZeroDivisionError("oops"))
        with pytest.raises(StorageError, match="ZeroDivisionError: oops"):
            reactor.result(store.log.append(1, batch_of(0), now_ms=0))

    def test_close_answers_all_that_wait(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_embedded(sync=True)
        release = hold_writer(store, reactor, monkeypatch)
        appends = [store.log.append(1, batch_of(number), now_ms=0) for number in range(3)]
        closed = store.close()
        release()
        assert [result.base_offset for result in reactor.wait(*appends, closed)[:3]] == [0, 1, 2]
        assert not list(store._data_dir.glob("ahead.*"))
        assert keys(open_embedded(), 1) == [b"0", b"1", b"2"]

    def test_a_metadata_key_that_lmdb_cannot_take(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded()
        with pytest.raises(StorageError):
            reactor.result(store.metadata.put({b"a": b"1", bytes(600): b"2"}))
        assert store.metadata.get(b"a") is None

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (lmdb.DiskError("ENOSPC"), StorageFull),
            (lmdb.Error(f"EDQUOT: {os.strerror(errno.EDQUOT)}"), StorageFull),
            (lmdb.Error("EIO"), StorageError),
        ],
    )
    def test_errors_of_the_disk(self, tmp_path: Path, error: lmdb.Error, kind: type[StorageError]) -> None:
        opened = Environment(tmp_path, sync=False, max_bytes=10**7)

        def change(_: object) -> None:
            raise error

        with pytest.raises(StorageError, match=f"{tmp_path}: E") as raised:
            opened.write(change)
        assert type(raised.value) is kind
        opened.close()
