"""The writer: when it reports its writes, and what it does when the disk fails."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import lmdb
import pytest

from kshim.storage.embedded import writer as writer_module
from kshim.storage.embedded.environment import Environment
from kshim.storage.embedded.writer import CALM_S
from kshim.storage.interfaces import Appended, Offsets, StorageError, StorageFull
from tests.storage.embedded import OpenStore, batch_of, fail_writes, keys
from tests.storage.reactor import PATIENCE_S, Reactor


@dataclass
class Disk:
    """Records the writer's calls to the environment, and holds each until go()."""

    calls: list[str]
    going: SimpleQueue[Exception | None]
    arrived: SimpleQueue[None]

    def go(self, error: Exception | None = None) -> None:
        """Wait for the writer's next call, and let it return or fail."""
        self.arrived.get(timeout=PATIENCE_S)
        self.going.put(error)


class LostSyncError(StorageError):
    """The disk has not written all that was synced."""


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk([], SimpleQueue(), SimpleQueue())

    def slow(name: str) -> None:
        real = getattr(Environment, name)

        def call(*args: Any, **options: Any) -> Any:
            disk.calls.append(name)
            disk.arrived.put(None)
            if (error := disk.going.get(timeout=PATIENCE_S)) is not None:
                args[0].is_trusted = not isinstance(error, LostSyncError)
                raise error
            return real(*args, **options)

        monkeypatch.setattr(Environment, name, call)

    slow("write")
    slow("sync")
    return disk


class TestDurability:
    """A commit is durable with the next one, or with a sync; it is reported only then."""

    def test_one_alone_is_synced(self, open_embedded: OpenStore, reactor: Reactor, disk: Disk) -> None:
        append = open_embedded(sync=True).log.append(1, batch_of(0), now_ms=0)
        disk.go()
        disk.arrived.get(timeout=PATIENCE_S)
        assert disk.calls == ["write", "sync"]
        assert not reactor.has_calls
        disk.going.put(None)
        assert reactor.result(append) == Appended(0, 0, -1)

    def test_commits_and_syncs_are_timed(self, open_embedded: OpenStore, reactor: Reactor) -> None:
        store = open_embedded(sync=True)
        reactor.result(store.log.append(1, batch_of(0), now_ms=0))
        queued, durations, _ = store.activity()
        times = {what: found.measured() for what, found in durations.items()}
        assert queued == 0
        assert times["commit"].counts[-1] >= 1
        assert times["sync"].counts[-1] == 1
        assert times["sync"].sum_s > 0

    def test_the_next_one_makes_it_durable(
        self, open_embedded: OpenStore, reactor: Reactor, disk: Disk
    ) -> None:
        store = open_embedded(sync=True)
        appends = [store.log.append(1, batch_of(0), now_ms=0)]
        disk.arrived.get(timeout=PATIENCE_S)
        appends += [store.log.append(1, batch_of(number), now_ms=0) for number in (1, 2)]
        disk.going.put(None)
        disk.arrived.get(timeout=PATIENCE_S)
        assert disk.calls == ["write", "write"]
        assert not reactor.has_calls
        disk.going.put(None)
        assert reactor.result(appends[0]) == Appended(0, 0, -1)
        assert not appends[1].called
        disk.go()
        assert reactor.wait(*appends[1:]) == [Appended(1, 0, -1), Appended(2, 0, -1)]
        assert disk.calls == ["write", "write", "sync"]

    def test_a_write_that_fails_leaves_the_one_before_durable(
        self, open_embedded: OpenStore, reactor: Reactor, disk: Disk
    ) -> None:
        store = open_embedded(sync=True)
        first = store.log.append(1, batch_of(0), now_ms=0)
        disk.arrived.get(timeout=PATIENCE_S)
        second = store.log.append(1, batch_of(1), now_ms=0)
        disk.going.put(None)
        disk.go(StorageError("EIO"))
        disk.go()
        assert reactor.result(first) == Appended(0, 0, -1)
        with pytest.raises(StorageError, match="EIO"):
            reactor.result(second)
        assert disk.calls == ["write", "write", "sync"]

    def test_a_write_that_changes_nothing_makes_nothing_durable(
        self, open_embedded: OpenStore, reactor: Reactor, disk: Disk
    ) -> None:
        """LMDB commits it without a sync."""
        store = open_embedded(sync=True)
        append = store.log.append(1, batch_of(0), now_ms=0)
        disk.arrived.get(timeout=PATIENCE_S)
        nothing = store.metadata.put({b"absent": None})
        disk.going.put(None)
        disk.go()
        disk.arrived.get(timeout=PATIENCE_S)
        assert disk.calls == ["write", "write", "sync"]
        assert not reactor.has_calls
        disk.going.put(None)
        assert reactor.wait(append, nothing) == [Appended(0, 0, -1), None]

    def test_a_commit_whose_sync_fails_takes_the_one_before_along(
        self, open_embedded: OpenStore, reactor: Reactor, disk: Disk
    ) -> None:
        """The kernel may have dropped both, and would call the next sync a success."""
        store = open_embedded(sync=True)
        first = store.log.append(1, batch_of(0), now_ms=0)
        disk.arrived.get(timeout=PATIENCE_S)
        second = store.log.append(1, batch_of(1), now_ms=0)
        disk.going.put(None)
        disk.go(LostSyncError("EIO"))
        disk.arrived.get(timeout=PATIENCE_S)  # a write to the file that was opened again
        assert [str(error) for error in reactor.wait(first, second)] == ["EIO", "EIO"]
        assert disk.calls == ["write", "write", "write"]
        disk.going.put(None)
        disk.go()
        again = store.log.append(1, batch_of(2), now_ms=0)
        disk.go()
        disk.go()
        assert reactor.result(again) == Appended(1, 0, -1)
        assert keys(store, 1) == [b"0", b"2"]

    def test_nothing_is_read_or_written_until_the_file_is_open_again(
        self, open_embedded: OpenStore, reactor: Reactor, disk: Disk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(writer_module, "RETRY_S", 0.05)
        store = open_embedded(sync=True)
        append = store.log.append(1, batch_of(0), now_ms=0)
        disk.go()
        disk.go(LostSyncError("EIO"))
        assert str(reactor.wait(append)[0]) == "EIO"
        for _ in range(2):
            disk.go()
            disk.arrived.get(timeout=PATIENCE_S)
            disk.going.put(LostSyncError("EIO again"))
        disk.arrived.get(timeout=PATIENCE_S)
        disk.going.put(None)
        disk.arrived.get(timeout=PATIENCE_S)
        assert disk.calls == ["write", "sync"] * 4
        disk.going.put(None)
        again = store.log.append(1, batch_of(2), now_ms=0)
        disk.go()
        disk.go()
        assert reactor.result(again) == Appended(1, 0, -1)

    def test_a_sync_that_fails_is_told_and_what_is_there_is_looked_at_again(
        self, open_embedded: OpenStore, reactor: Reactor, disk: Disk
    ) -> None:
        store = open_embedded(sync=True)
        append = store.log.append(1, batch_of(0), now_ms=0)
        disk.go()
        disk.arrived.get(timeout=PATIENCE_S)
        behind = store.log.append(1, batch_of(1), now_ms=0)
        disk.going.put(StorageError("EIO"))
        assert [str(error) for error in reactor.wait(append, behind)] == ["EIO", "EIO"]
        assert store.log.offsets(1) == Offsets(0, 1, 1, 1)
        again = store.log.append(1, batch_of(2), now_ms=0)
        disk.go()
        disk.go()
        assert reactor.result(again) == Appended(1, 0, -1)

    def test_what_is_held_does_not_wait_for_an_order(
        self, open_embedded: OpenStore, reactor: Reactor, disk: Disk
    ) -> None:
        store = open_embedded(sync=True)
        append = store.log.append(1, batch_of(0), now_ms=0)
        disk.arrived.get(timeout=PATIENCE_S)
        assert store._writer is not None
        store._writer.order(lambda: None)
        disk.going.put(None)
        disk.go()
        assert reactor.result(append) == Appended(0, 0, -1)

    def test_where_nothing_is_synced_nothing_is_held(
        self, open_embedded: OpenStore, reactor: Reactor, disk: Disk
    ) -> None:
        store = open_embedded(sync=False)
        first = store.log.append(1, batch_of(0), now_ms=0)
        disk.arrived.get(timeout=PATIENCE_S)
        second = store.log.append(1, batch_of(1), now_ms=0)
        disk.going.put(None)
        disk.go()  # the sync, which does nothing
        assert reactor.result(first) == Appended(0, 0, -1)
        disk.go()
        disk.go()
        assert reactor.result(second) == Appended(1, 0, -1)
        assert disk.calls == ["write", "sync", "write", "sync"]


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


class TestFailure:
    def test_an_append_that_fails_takes_what_is_behind_it_along(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_embedded()
        reactor.result(store.log.append(1, batch_of(0), now_ms=0))
        fail_writes(monkeypatch, StorageError("EIO"))
        first = store.log.append(1, batch_of(1), now_ms=0)
        reactor.await_call()  # the first has failed, and the reactor does not know yet
        monkeypatch.undo()
        behind = [store.log.append(1, batch_of(2), now_ms=0), store.log.append(2, batch_of(3), now_ms=0)]
        put = store.metadata.put({b"a": b"1"})
        assert [str(error) for error in reactor.wait(first, *behind, put)] == ["EIO"] * 4
        assert store.log.offsets(1) == Offsets(0, 1, 1, 1)
        assert store.log.offsets(2) == Offsets(0, 0, 0, 0)
        assert store.metadata.get(b"a") is None

        assert reactor.result(store.log.append(1, batch_of(4), now_ms=0)) == Appended(1, 0, -1)
        assert keys(store, 1) == [b"0", b"4"]

    def test_an_append_from_within_the_failure_is_a_new_beginning(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_embedded()
        fail_writes(monkeypatch, StorageError("EIO"))
        again: list[Any] = []

        def retry(_: object) -> None:
            again.append(store.log.append(1, batch_of(2), now_ms=0))

        first = store.log.append(1, batch_of(0), now_ms=0).addErrback(retry)
        behind = store.log.append(1, batch_of(1), now_ms=0)
        reactor.await_call()
        monkeypatch.undo()
        assert [type(result) for result in reactor.wait(first, behind)] == [type(None), StorageError]
        assert reactor.result(again[0]) == Appended(0, 0, -1)
        assert keys(store, 1) == [b"2"]

    def test_late_news_of_a_failure_changes_nothing(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_embedded()
        again: list[Any] = []
        with monkeypatch.context() as broken:
            fail_writes(broken, StorageError("EIO"))
            first = store.log.append(1, batch_of(0), now_ms=0)
            first.addErrback(lambda _: again.append(store.log.append(1, batch_of(2), now_ms=0)))
            reactor.await_call()
        release, write = Event(), Environment.write

        def held(*args: Any, **options: Any) -> None:
            assert release.wait(PATIENCE_S)
            write(*args, **options)

        monkeypatch.setattr(Environment, "write", held)
        behind = store.log.append(1, batch_of(1), now_ms=0)
        reactor.wait(first, behind)  # the append that `first` repeated is held too
        last = store.log.append(1, batch_of(3), now_ms=0)
        release.set()
        assert reactor.wait(*again, last) == [Appended(0, 0, -1), Appended(1, 0, -1)]
        assert keys(store, 1) == [b"2", b"3"]

    def test_a_failure_and_its_end_are_logged_once(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On a full disk small writes still succeed; neither these nor failures in between are logged."""
        told: list[str] = []
        for level in ("warn", "error"):
            monkeypatch.setattr(
                writer_module.logger, level, lambda line, **more: told.append(line.format(**more))
            )
        times = iter([10.0, 11.0, 12.0, 13.0, 17.5, 18.5, 19.0])
        store = open_embedded()
        writer = store._writer
        assert writer is not None
        monkeypatch.setattr(writer_module, "time", SimpleNamespace(monotonic=lambda: next(times)))
        for fails in (True, False, True, True, False, False, False):
            if fails:
                writer._on_failed([], -1, StorageError("EIO"))
            else:
                writer._on_committed([])
        assert told == ["storage fails: EIO", "storage works again"]
        monkeypatch.undo()

    def test_why_writes_are_refused(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_embedded()
        writer, environment = store._writer, store._environment
        assert writer is not None
        now = SimpleNamespace(s=100.0, has_room=False)
        monkeypatch.setattr(writer_module, "time", SimpleNamespace(monotonic=lambda: now.s))
        monkeypatch.setattr(environment, "has_room", lambda size: now.has_room)
        assert store.activity().failure == ""
        writer._on_failed([], -1, StorageFull("no space left"))
        now.s += CALM_S + 1
        assert store.activity().failure == "the disk is full: records and offsets are refused"
        now.has_room = True  # nobody has written meanwhile
        assert store.activity().failure == ""
        writer._on_failed([], -1, StorageError("EIO"))
        assert store.activity().failure == "the disk fails: records and offsets are refused"
        now.s += CALM_S + 1
        assert store.activity().failure == ""
        environment.is_trusted = False
        assert store.activity().failure == "the disk fails: records and offsets are refused"
        monkeypatch.undo()
        environment.is_trusted = True

    def test_the_unexpected_is_answered_too(
        self, open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_embedded()
        fail_writes(monkeypatch, ZeroDivisionError("oops"))
        with pytest.raises(StorageError, match="ZeroDivisionError: oops"):
            reactor.result(store.log.append(1, batch_of(0), now_ms=0))

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
