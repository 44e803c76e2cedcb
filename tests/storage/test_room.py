"""A disk that is nearly full: records leave the reserve alone, and what frees space may use it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kshim.storage.embedded import EmbeddedStore, applier, room
from kshim.storage.embedded.environment import MAP_LOCK_FILE, Environment
from kshim.storage.embedded.room import RESERVE_FILE, Room
from kshim.storage.interfaces import StorageError, StorageFull
from tests.storage.embedded import (
    OpenStore,
    apply_all,
    batch_of,
    entries,
    fail_transactions,
    fail_writes,
    keys,
    when_deleted,
)
from tests.storage.reactor import Reactor

DISK_BYTES = 6_000_000
RESERVE_BYTES = 1_000_000


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk(DISK_BYTES)
    monkeypatch.setattr(room, "RESERVE_BYTES", RESERVE_BYTES)
    monkeypatch.setattr(room, "LEFT_BYTES", 200_000)
    monkeypatch.setattr(Room, "free_bytes", lambda room: disk.free_bytes(room._data_dir))
    return disk


class Disk:
    """A disk of some size, with nothing but a data directory."""

    def __init__(self, size: int) -> None:
        self.size = size

    def free_bytes(self, data_dir: Path) -> int:
        return self.size - sum(file.stat().st_size for file in data_dir.iterdir())


def fill(store: EmbeddedStore, reactor: Reactor, partition_no: int = 1, size: int = 50_000) -> int:
    """Append until that is refused; return the number of appends."""
    for count in range(10_000):
        (result,) = reactor.wait(store.log.append(partition_no, batch_of(count, size), now_ms=0))
        if isinstance(result, BaseException):
            assert isinstance(result, StorageFull), result
            assert str(result) == f"no space left for {store._data_dir}"
            return count
        apply_all(store, reactor)
    raise AssertionError("the disk does not get full")


def reserve(store: EmbeddedStore) -> Path:
    return store._data_dir / RESERVE_FILE


def test_records_leave_the_reserve_alone(open_embedded: OpenStore, reactor: Reactor, disk: Disk) -> None:
    store = open_embedded()
    count = fill(store, reactor)
    fill(store, reactor, size=10)
    assert count > 50
    assert reserve(store).stat().st_size == RESERVE_BYTES
    assert disk.free_bytes(store._data_dir) >= 0
    assert keys(store, 1)[:count] == [b"%d" % number for number in range(count)]


def test_a_deletion_frees_space_for_records(
    open_embedded: OpenStore, reactor: Reactor, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_embedded()
    count = fill(store, reactor)
    fill(store, reactor, size=10)
    reactor.result(store.metadata.put({b"topic": b"x" * 5000}))
    apply_all(store, reactor)
    deleted = when_deleted(store, monkeypatch)
    store.log.delete(1)
    deleted()
    assert fill(store, reactor, 2) > count // 2, "in the pages that are free now"
    assert disk.free_bytes(store._data_dir) >= 0


def test_records_do_not_take_the_space_of_a_reserve_that_is_given_up(
    open_embedded: OpenStore, reactor: Reactor, disk: Disk
) -> None:
    store = open_embedded()
    fill(store, reactor)
    fill(store, reactor, size=10)
    reactor.result(store.metadata.put({b"topic": b"x" * 5000}))
    apply_all(store, reactor)
    free = disk.free_bytes(store._data_dir)
    assert free > RESERVE_BYTES // 2
    fill(store, reactor)
    assert disk.free_bytes(store._data_dir) == free


def test_a_reserve_that_is_given_up_is_no_room_for_the_log(
    open_embedded: OpenStore, reactor: Reactor, disk: Disk
) -> None:
    store = open_embedded()
    fill(store, reactor)
    room = Room(store._data_dir)
    spare = room.spare_bytes()
    room.give_up(0)
    assert not reserve(store).exists()
    assert room.spare_bytes() == spare


def test_the_reserve_is_made_again_when_there_is_room(
    open_embedded: OpenStore, reactor: Reactor, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "AGAIN_S", 0)
    store = open_embedded()
    count = fill(store, reactor)
    fill(store, reactor, size=10)
    reactor.result(store.metadata.put({b"topic": b"x" * 5000}))
    apply_all(store, reactor)
    disk.size *= 2
    assert fill(store, reactor) > count // 2
    assert reserve(store).stat().st_size == RESERVE_BYTES


def test_on_a_full_disk_records_are_refused_and_the_rest_goes_on(
    open_embedded: OpenStore, reactor: Reactor, disk: Disk
) -> None:
    store = open_embedded()
    fill(store, reactor)
    end = store.log.offsets(1).log_end_offset
    append = store.log.append(1, batch_of(0, 500_000), now_ms=0)
    trim = store.log.delete_records(1, end)
    put = store.metadata.put({b"topic": b"1"})
    outcome = reactor.wait(append, trim, put)
    assert [type(each) for each in outcome] == [StorageFull, int, type(None)]
    assert store.metadata.get(b"topic") == b"1"
    assert store.log.offsets(1)[:3] == (end, end, end)


def test_a_log_without_room_goes_on_as_soon_as_there_is_some(
    open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_embedded()
    reactor.result(store.log.append(1, batch_of(0), now_ms=0))
    with monkeypatch.context() as broken:
        fail_writes(broken, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        (error,) = reactor.wait(store.log.append(1, batch_of(1), now_ms=0))
        assert isinstance(error, StorageFull)
        assert str(error) == f"no space left for {store._data_dir}: No space left on device"
    assert reactor.result(store.log.append(1, batch_of(2), now_ms=0)).base_offset == 1
    assert keys(store, 1) == [b"0", b"2"]


def test_what_lmdb_has_no_room_for_stays_readable_and_is_not_lost(
    open_embedded: OpenStore, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other programs have filled the disk since the records were acknowledged."""
    monkeypatch.setattr(applier, "RETRY_S", 0.01)
    store = open_embedded()
    with monkeypatch.context() as broken:
        fail_transactions(broken, StorageFull("no space left"))
        reactor.result(store.log.append(1, batch_of(0), now_ms=0))
        apply_all(store, reactor)
        (error,) = reactor.wait(store.log.append(1, batch_of(1), now_ms=0))
        assert str(error) == "no space left"
        assert store.activity().failure == "the disk is full: records and offsets are refused"
        assert keys(store, 1) == [b"0"]
        assert reactor.result(store.metadata.put({b"a": b"1"})) is None
        reactor.result(store.close())
    store = open_embedded()
    assert (keys(store, 1), store.metadata.get(b"a")) == ([b"0"], b"1")
    apply_all(store, reactor)
    assert entries(store) == 1


def test_a_reserve_of_an_earlier_start_is_kept(open_embedded: OpenStore, reactor: Reactor) -> None:
    store = open_embedded()
    reactor.result(store.metadata.put({b"a": b"1"}))
    reactor.result(store.log.append(1, batch_of(0), now_ms=0))
    apply_all(store, reactor)
    before = reserve(store).stat()
    assert before.st_blocks * 512 >= room.RESERVE_BYTES
    assert before.st_mode & 0o777 == 0o600
    reactor.result(store.close())
    store = open_embedded()
    reactor.result(store.log.append(1, batch_of(0), now_ms=0))
    assert reserve(store).stat().st_ino == before.st_ino


@pytest.mark.parametrize("is_dangling", [True, False])
def test_links_are_not_followed(tmp_path: Path, is_dangling: bool) -> None:
    """Others may have put them there before the first start."""
    other, data_dir = tmp_path / "other", tmp_path / "data"
    data_dir.mkdir()
    if not is_dangling:
        other.write_text("mine")
        other.chmod(0o644)
    for name in (RESERVE_FILE, "old.mdb"):
        (data_dir / name).symlink_to(other)
    store = EmbeddedStore(data_dir, reactor := Reactor(), sync=False)
    store.open()
    reactor.result(store.log.append(1, batch_of(0), now_ms=0))
    reactor.result(store.close())
    assert (data_dir / RESERVE_FILE).lstat().st_size == room.RESERVE_BYTES
    for name in ("kshim.lock", MAP_LOCK_FILE):
        (data_dir / name).unlink()
        (data_dir / name).symlink_to(other)
        with pytest.raises(
            StorageError, match=f"^cannot use data directory {data_dir}: {name} is a symbolic link$"
        ):
            EmbeddedStore(data_dir, reactor, sync=False).open()
        (data_dir / name).unlink()
    assert other.exists() is not is_dangling
    if not is_dangling:
        assert other.read_text() == "mine"
        assert other.stat().st_mode & 0o777 == 0o644


def test_a_map_lock_that_the_disk_has_no_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def allocate(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", allocate)
    with pytest.raises(StorageFull, match=f"^cannot use data directory {tmp_path}: No space left on device$"):
        Environment(tmp_path, sync=False, max_bytes=10**7)
