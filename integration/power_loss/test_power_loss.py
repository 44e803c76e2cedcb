"""The files that a disk may hold, put together from a trace."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from integration.power_loss.__main__ import run
from integration.power_loss.disk import PAGE_BYTES, possible_files
from integration.power_loss.trace import DIRECTORY, Removed, Synced, SyncFailed, Written, events
from integration.support.server import FOREIGN_COMMAND

DATA_DIR = Path("/d")
FILE = DATA_DIR / "data.mdb"
BEFORE = [Written(0.1, 0, b"0"), Synced(0.3, 0.2), Synced(0.3, 0.2, DIRECTORY)]
"""What has made a file with one byte."""


def hex_of(data: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in data)


def test_a_trace_is_read() -> None:
    name = hex_of(bytes(FILE))
    lines = [
        f'7 1.5 pwrite64(5<{name}>, "{hex_of(b"ab")}", 2, 4096) = 2',
        f'7 1.6 pwrite64(4<{hex_of(b"/d/other")}>, "{hex_of(b"ab")}", 2, 0) = 2',
        f"7 1.7 lseek(5<{name}>, 8192, SEEK_SET) = 8192",
        f'7 1.8 writev(5<{name}>, [{{iov_base="{hex_of(b"cd")}", iov_len=2}}, '
        f'{{iov_base="{hex_of(b"ef")}", iov_len=2}}], 2) = 4',
        f"8 1.9 fdatasync(5<{name}> <unfinished ...>",
        f'7 2.0 writev(5<{name}>, [{{iov_base="{hex_of(b"gh")}", iov_len=2}}], 1) = 2',
        "8 2.1 <... fdatasync resumed>)      = 0",
        "8 2.2 +++ exited with 0 +++",
    ]
    assert list(events(lines, DATA_DIR)) == [
        Written(1.5, 4096, b"ab"),
        Written(1.8, 8192, b"cdef"),
        Written(2.0, 8196, b"gh"),
        Synced(2.1, 1.9),
    ]


def test_a_failed_sync_is_read() -> None:
    lines = [f"7 1.5 fdatasync(5<{hex_of(bytes(FILE))}>) = -1 EIO (Input/output error) (INJECTED)"]
    assert list(events(lines, DATA_DIR)) == [SyncFailed(1.5, 1.5)]


def test_the_next_sync_does_not_bring_back_what_a_failed_one_has_dropped() -> None:
    happened = [Written(1, 0, b"1"), SyncFailed(2, 2), Synced(3, 3)]
    last = {
        list(possible_files([*BEFORE, *happened], random.Random(seed)))[-1][1]["data.mdb"]
        for seed in range(50)
    }
    assert last == {b"0", b"1"}


def test_what_is_synced_is_there_and_what_is_not_may_be() -> None:
    """Unsynced writes survive in whole pages, or not at all; a write during a sync is not synced by it."""
    first, second = b"1" * (PAGE_BYTES + 1), b"2" * PAGE_BYTES
    happened = [Written(1, 0, first), Written(2.5, PAGE_BYTES, second), Synced(3, 2), Written(4, 0, second)]
    found = [
        (at_s, image["data.mdb"])
        for seed in range(50)
        for at_s, image in possible_files([*BEFORE, *happened], random.Random(seed))
        if at_s >= 1
    ]
    assert {file for at_s, file in found if at_s == 1} >= {b"0", b"1" * PAGE_BYTES, first}
    pages = {(file[:PAGE_BYTES], file[PAGE_BYTES:]) for at_s, file in found if at_s == 4}
    ones, twos = first[:PAGE_BYTES], second
    assert pages == {(ones, b"1"), (ones, twos), (twos, b"1"), (twos, twos)}


def test_a_name_is_there_for_certain_once_its_directory_is_synced() -> None:
    """Until then a new file may be missing, and a removed one may still be there."""
    written, synced = Written(1, 0, b"1", "ahead.1"), Synced(2, 1.5, "ahead.1")
    happened = [written, synced, Synced(4, 3, DIRECTORY), Removed(5, "ahead.1"), Synced(7, 6, DIRECTORY)]
    found: dict[float, set[bytes | None]] = {}
    for seed in range(50):
        for at_s, image in possible_files(happened, random.Random(seed)):
            found.setdefault(at_s, set()).add(image.get("ahead.1"))
    assert found[2] == {None, b"1"}
    assert found[4] == {b"1"}
    assert found[5] == {None, b"1"}
    assert found[7] == {None}


def test_removals_and_syncs_of_the_directory_are_read() -> None:
    name = hex_of(b"/d/ahead.1")
    lines = [
        f'7 1.5 pwritev2(5<{name}>, [{{iov_base="{hex_of(b"ab")}", iov_len=2}}], 1, 30, 0) = 2',
        f"7 1.6 fsync(4<{hex_of(b'/d')}>) = 0",
        f'7 1.7 unlink("{name}") = 0',
        f'7 1.8 unlink("{hex_of(b"/d/other")}") = 0',
    ]
    assert list(events(lines, DATA_DIR)) == [
        Written(1.5, 30, b"ab", "ahead.1"),
        Synced(1.6, 1.6, DIRECTORY),
        Removed(1.7, "ahead.1"),
    ]


@pytest.mark.skipif(bool(FOREIGN_COMMAND) or not shutil.which("strace"), reason="only kshim, under strace")
def test_what_is_acknowledged_outlives_a_few_losses_of_power(tmp_path: Path) -> None:
    """`python -m integration.power_loss` tries thousands."""
    of_records, of_group, looked_at = run(tmp_path, records=30, seed=5)
    assert of_records == 30
    assert min(of_group, looked_at) > 10
