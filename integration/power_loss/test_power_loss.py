"""The files that a disk may hold, put together from a trace."""

from __future__ import annotations

import random
from pathlib import Path

from integration.power_loss.disk import PAGE_BYTES, possible_files
from integration.power_loss.trace import Synced, SyncFailed, Written, events

FILE = Path("/d/data.mdb")


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
    assert list(events(lines, FILE)) == [
        Written(1.5, 4096, b"ab"),
        Written(1.8, 8192, b"cdef"),
        Written(2.0, 8196, b"gh"),
        Synced(2.1, 1.9),
    ]


def test_a_failed_sync_is_read() -> None:
    lines = [f"7 1.5 fdatasync(5<{hex_of(bytes(FILE))}>) = -1 EIO (Input/output error) (INJECTED)"]
    assert list(events(lines, FILE)) == [SyncFailed(1.5, 1.5)]


def test_the_next_sync_does_not_bring_back_what_a_failed_one_has_dropped() -> None:
    happened = [Written(1, 0, b"1"), SyncFailed(2, 2), Synced(3, 3)]
    last = {list(possible_files(b"0", happened, random.Random(seed)))[-1][1] for seed in range(50)}
    assert last == {b"0", b"1"}


def test_what_is_synced_is_there_and_what_is_not_may_be() -> None:
    """Unsynced writes survive in whole pages, or not at all; a write during a sync is not synced by it."""
    first, second = b"1" * (PAGE_BYTES + 1), b"2" * PAGE_BYTES
    happened = [Written(1, 0, first), Written(2.5, PAGE_BYTES, second), Synced(3, 2), Written(4, 0, second)]
    found = [
        (at_s, file)
        for seed in range(50)
        for at_s, file in possible_files(b"0", happened, random.Random(seed))
    ]
    assert {file for at_s, file in found if at_s == 1} >= {b"0", b"1" * PAGE_BYTES, first}
    pages = {(file[:PAGE_BYTES], file[PAGE_BYTES:]) for at_s, file in found if at_s == 4}
    ones, twos = first[:PAGE_BYTES], second
    assert pages == {(ones, b"1"), (ones, twos), (twos, b"1"), (twos, twos)}
