"""The write-ahead log: what was appended is read again, up to the first record that is not whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kshim.storage.embedded import ahead as ahead_module
from kshim.storage.embedded.ahead import Ahead, chain_of, log_files
from kshim.storage.embedded.logged import Logged, LoggedAppend, decode, encode
from kshim.storage.embedded.writes import Append, Delete, Forget, Put, Trim, Write
from kshim.storage.interfaces import Appended
from kshim.storage.producers import NO_CHANGES


def put(seq: int, size: int = 10) -> Put:
    return Put(changes={b"%d" % seq: bytes(size)}, seq=seq)


def append(seq: int, batches: bytes) -> Append:
    return Append(
        partition_no=3,
        last_offset=7,
        max_timestamp_so_far=-1,
        batches=bytearray(batches),
        changes=NO_CHANGES,
        result=Appended(7, 0, -1),
        seq=seq,
    )


def seqs(logged: Iterable[Logged]) -> list[int]:
    return [each.seq for each in logged]


def found(data_dir: Path, applied: int = 0) -> list[int]:
    return [record.seq for record in chain_of(data_dir, applied).records]


@pytest.mark.parametrize("sync", [False, True])
def test_each_kind_of_write_is_read_again(tmp_path: Path, sync: bool) -> None:
    log = Ahead(tmp_path, sync=sync)
    writes: list[Write] = [
        append(1, b"batches"),
        Put(changes={b"a": b"1", b"b": None, b"": b""}, seq=2),
        Trim(partition_no=4, log_start_offset=2**40, seq=3),
        Forget(partition_no=5, producer_ids=[1, 2**62], seq=4),
        Delete(partition_no=2**32 - 1, seq=5),
    ]
    log.append(writes[:2])
    log.append(writes[2:])
    log.sync()
    records = chain_of(tmp_path, 0).records
    assert b"".join(bytes(record.body) for record in records) == b"".join(
        bytes(part) for write in writes for part in encode(write)
    )
    read: list[Any] = [decode(record.seq, record.body) for record in records]
    assert read[0] == LoggedAppend(1, 3, memoryview(b"batches"))
    assert read[1].changes == {b"a": b"1", b"b": None, b"": b""}
    assert (read[2].partition_no, read[2].log_start_offset) == (4, 2**40)
    assert (read[3].partition_no, read[3].producer_ids) == (5, [1, 2**62])
    assert read[4].partition_no == 2**32 - 1
    assert seqs(read) == [1, 2, 3, 4, 5]
    assert found(tmp_path, 3) == [4, 5]
    log.close()


def test_the_chain_ends_at_the_first_record_that_is_not_whole(tmp_path: Path) -> None:
    log = Ahead(tmp_path, sync=False)
    for seq in range(1, 6):
        log.append([put(seq, 100)])
    (file,) = log_files(tmp_path)
    whole = file.read_bytes()
    size = len(whole) // 5
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert found(tmp_path) == list(range(1, at // size + 1))
        file.write_bytes(whole[:at])
        assert found(tmp_path) == list(range(1, at // size + 1))
    log.close()


def test_what_lmdb_has_is_written_over(tmp_path: Path) -> None:
    """Old records behind the new ones are not taken for theirs, also if their numbers follow."""
    log = Ahead(tmp_path, sync=True)
    log.append([put(seq) for seq in range(1, 21)])
    log.sync()
    (file,) = log_files(tmp_path)
    size = file.stat().st_size
    log.release(20)
    log.append([put(seq) for seq in range(21, 24)])
    assert file.stat().st_size == size
    assert found(tmp_path, 20) == [21, 22, 23]
    log.close()
    assert log_files(tmp_path) == [file]


def test_an_append_that_fails_leaves_the_log_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole records that it may have written do not follow those that come instead."""
    log = Ahead(tmp_path, sync=False)
    log.append([put(1)])
    pwrite = os.pwritev

    def full(fd: int, pieces: Any, position: int) -> int:
        pwrite(fd, pieces, position)
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as broken:
        broken.setattr(os, "pwritev", full)
        with pytest.raises(OSError, match="full"):
            log.append([put(2), put(3), put(4)])
    assert found(tmp_path) == [1, 2, 3, 4]
    log.append([Put(changes={b"2": b"another 10"}, seq=2)])
    assert found(tmp_path) == [1, 2]
    log.close()


def test_full_files_are_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead_module, "FILE_BYTES", 1000)
    log = Ahead(tmp_path, sync=True)
    for seq in range(1, 41):
        log.append([put(seq, 200)])
        log.sync()
    assert len(log_files(tmp_path)) == 10
    assert found(tmp_path) == list(range(1, 41))
    log.release(38)
    for seq in range(41, 52):
        log.append([put(seq, 200)])
        log.sync()
    assert found(tmp_path, 38) == list(range(39, 52))
    assert len(log_files(tmp_path)) == 4
    again = Ahead(tmp_path, sync=True)
    assert seqs(again.load(45)) == list(range(46, 52))
    assert len(log_files(tmp_path)) == 2
    log.close()
    again.close()


def test_a_record_larger_than_a_file_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead_module, "FILE_BYTES", 1000)
    log = Ahead(tmp_path, sync=True)
    for seq, size in ((1, 10), (2, 100_000), (3, 10)):
        log.append([append(seq, bytes(size))])
        log.sync()
    assert found(tmp_path) == [1, 2, 3]
    log.close()


def test_a_file_whose_predecessor_lost_its_end_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead_module, "FILE_BYTES", 1000)
    log = Ahead(tmp_path, sync=False)
    for seq in range(1, 9):
        log.append([put(seq, 200)])
    first, second = sorted(log_files(tmp_path))
    first.write_bytes(first.read_bytes()[:-1])
    assert found(tmp_path) == [1, 2, 3]
    again = Ahead(tmp_path, sync=True)
    assert seqs(again.load(0)) == [1, 2, 3]
    assert log_files(tmp_path) == [first]
    again.append([put(4, 200)])
    second.with_name("ahead.7").write_bytes(b"")
    assert found(tmp_path) == [1, 2, 3, 4]
    again.close()
    log.close()


def test_other_files_and_links_are_left_alone(tmp_path: Path) -> None:
    for name in ("ahead.txt", "ahead.", "other"):
        (tmp_path / name).write_text("mine")
    (tmp_path / "ahead.1").symlink_to(tmp_path / "other")
    log = Ahead(tmp_path, sync=True)
    assert log.load(0) == []
    assert (tmp_path / "other").read_text() == "mine"
    assert (tmp_path / "ahead.1").is_symlink()
    log.close()
