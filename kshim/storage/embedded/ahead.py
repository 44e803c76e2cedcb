"""The write-ahead log: files to which writes are appended before they are put into LMDB.

Writes are numbered from 1 on. Each record has a checksum that covers the write, its number, and the checksum
of the record before. So the records of a log are a chain, and nothing that a file still holds from earlier
use, or from a write that failed, can continue it.

LMDB's owner releases the records that LMDB holds durably. Once all records of the last file are released,
the next one is written over them from the file's beginning; so a server with little load uses the same few
blocks again and again. A file that is full is followed by another, and is used again once LMDB has its
records.

One thread at a time uses a log. Only `release` may be called by another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from kshim.storage.embedded.files import FULL, open_own, sync_directory
from kshim.storage.embedded.logged import Logged, decode, encode
from schemas.records.batch import crc32c

if TYPE_CHECKING:
    from kshim.storage.embedded.writes import Write

PREFIX: Final = "ahead."
FILE_BYTES = 16 * 1024**2
"""A file of this size is followed by another."""
GROWTH_BYTES = 256 * 1024
"""A synced file grows by so many zeros at a time: a sync that does not change a file's size costs less."""
SPARE_FILES = 2
LARGE_BYTES = 4096
"""The checksum of a smaller write is zlib's, which a start need not import; CRC-32C is much faster."""
JOINED_BYTES = 64 * 1024
"""Smaller appends are joined to one piece of memory, which costs less than a system call with many."""
PIECES = 512
"""Most pieces of one system call."""

_CRC: Final = Struct(">I")
_REST: Final = Struct(">IIQ")
"""The checksum of the record before, the size of the write, and its number: the checksum of a record covers
them, and then the write.
"""
HEAD_BYTES: Final = _CRC.size + _REST.size


Piece = bytes | bytearray | memoryview
Checksum = Callable[[Piece, int], int]


class Record(NamedTuple):
    """A record that was read from a file."""

    seq: int
    crc: int
    crc_before: int
    body: memoryview


class _File:
    """An open file. `end`: where the next record begins; `last_seq`: the number of its last record."""

    __slots__ = ("end", "fd", "last_seq", "path", "size")

    def __init__(self, path: Path, fd: int, last_seq: int = 0) -> None:
        self.path, self.fd, self.last_seq = path, fd, last_seq
        self.end = 0
        self.size = os.fstat(fd).st_size

    def remove(self) -> None:
        os.close(self.fd)
        self.path.unlink(missing_ok=True)


class Ahead:
    """The log of a data directory. Raises OSError."""

    def __init__(self, data_dir: Path, *, sync: bool) -> None:
        self._data_dir = data_dir
        self.is_synced = sync
        self._full: list[_File] = []
        """Files that get no more records, the oldest first."""
        self._spare: list[_File] = []
        self._last: _File | None = None
        self._released = 0
        self._crc = 0
        self._is_new = False
        """True if the last file's name is not durable yet."""

    def load(self, applied: int) -> list[Logged]:
        """Read the writes that follow number `applied`, make them durable, and remove all other files."""
        chain = chain_of(self._data_dir, applied)
        for path in log_files(self._data_dir):
            if path in chain.files:
                fd = open_own(path)
                self._full.append(_File(path, fd, chain.files[path]))
                if self.is_synced:
                    os.fdatasync(fd)
            else:
                path.unlink()
        self._full.sort(key=lambda file: file.last_seq)
        self._crc = chain.records[-1].crc if chain.records else 0
        return [decode(record.seq, record.body) for record in chain.records]

    def append(self, writes: Sequence[Write]) -> None:
        """Append writes. If that fails, the log is as it was."""
        pieces: list[Piece] = []
        crc, size = self._crc, 0
        for write in writes:
            body = encode(write)
            body_size = sum(map(len, body))
            rest = _REST.pack(crc, body_size, write.seq)
            checksum = _checksum(body_size)
            crc = checksum(rest, 0)
            for piece in body:
                crc = checksum(piece, crc)
            pieces += (_CRC.pack(crc), rest, *body)
            size += HEAD_BYTES + body_size
        file = self._with_room(size)
        _write(file.fd, pieces, size, file.end)
        if self.is_synced and file.end + size > file.size:
            self._grow(file, file.end + size)
        file.end += size
        file.last_seq = writes[-1].seq
        self._crc = crc

    def sync(self) -> None:
        """Make all appended writes durable; no-op if the system decides when they reach the disk."""
        if not self.is_synced or self._last is None:
            return
        os.fdatasync(self._last.fd)
        if self._is_new:
            sync_directory(self._data_dir)
            self._is_new = False

    def release(self, seq: int) -> None:
        """LMDB holds all writes up to this number durably."""
        self._released = seq

    def restart(self) -> None:
        """Remove all files: every write is in LMDB or has failed."""
        self._remove([*self._full, *self._spare, *([self._last] if self._last else [])])
        self._full, self._spare, self._last, self._crc = [], [], None, 0
        sync_directory(self._data_dir)

    def close(self) -> None:
        """Close the files. Those that are needed no more are removed."""
        for file in [*self._full, *self._spare, *([self._last] if self._last else [])]:
            if file.last_seq <= self._released:
                file.remove()
            else:
                os.close(file.fd)
        self._full, self._spare, self._last = [], [], None

    def _with_room(self, size: int) -> _File:
        """The file to which a record of `size` bytes is appended."""
        last = self._last
        if last is not None:
            if last.last_seq <= self._released:
                last.end = 0
            if last.end == 0 or last.end + size <= FILE_BYTES:
                return last
            self._full.append(last)
            self._last = None
        free = [file for file in self._full if file.last_seq <= self._released]
        self._full = [file for file in self._full if file.last_seq > self._released]
        for file in free:
            file.end = 0
        self._spare += free
        self._last = self._spare.pop(0) if self._spare else self._create()
        self._remove(self._spare[SPARE_FILES:])
        del self._spare[SPARE_FILES:]
        return self._last

    def _create(self) -> _File:
        numbers = [int(path.name[len(PREFIX) :]) for path in log_files(self._data_dir)]
        path = self._data_dir / f"{PREFIX}{max(numbers, default=0) + 1}"
        self._is_new = True
        return _File(path, open_own(path))

    def _grow(self, file: _File, end: int) -> None:
        """Write zeros behind the records, if the disk has room for them."""
        zeros = max(0, min(GROWTH_BYTES, FILE_BYTES - end))
        try:
            file.size = end + os.pwrite(file.fd, bytes(zeros), end)
        except OSError as error:
            if error.errno not in FULL:
                raise
            file.size = end

    def _remove(self, files: Iterable[_File]) -> None:
        for file in files:
            with suppress(OSError):
                file.remove()


class Chain(NamedTuple):
    """The records that follow one number without a gap, and the files that have them."""

    records: list[Record]
    files: dict[Path, int]
    """The number of each file's last record."""


def chain_of(data_dir: Path, applied: int) -> Chain:
    """Find the writes that follow number `applied`. Changes nothing. Raises OSError."""
    found = {path: list(_records(path.read_bytes())) for path in log_files(data_dir)}
    chain = Chain([], {})
    next_seq: int = applied + 1
    crc: int | None = None
    while True:
        following = {
            path: [record for record in some if record.seq >= next_seq] for path, some in found.items()
        }
        path = next(
            (
                path
                for path, some in following.items()
                if some and some[0].seq == next_seq and crc in (None, some[0].crc_before)
            ),
            None,
        )
        if path is None:
            return chain
        some = following[path]
        chain.records.extend(some)
        chain.files[path] = some[-1].seq
        next_seq, crc = some[-1].seq + 1, some[-1].crc


def log_files(data_dir: Path) -> list[Path]:
    """The files of the write-ahead log."""
    return [
        path
        for path in data_dir.glob(f"{PREFIX}*")
        if path.name[len(PREFIX) :].isdecimal() and path.is_file() and not path.is_symlink()
    ]


def _records(content: bytes) -> Iterator[Record]:
    """The chain of records at the beginning of a file."""
    view = memoryview(content)
    at, before = 0, None
    while len(view) - at >= HEAD_BYTES:
        (crc,) = _CRC.unpack_from(view, at)
        crc_before, size, seq = _REST.unpack_from(view, at + _CRC.size)
        end = at + HEAD_BYTES + size
        is_next = before is None or (crc_before == before.crc and seq == before.seq + 1)
        if (
            not is_next
            or not size
            or end > len(view)
            or _checksum(size)(view[at + _CRC.size : end], 0) != crc
        ):
            return
        before = Record(seq, crc, crc_before, view[at + HEAD_BYTES : end])
        yield before
        at = end


def _checksum(size: int) -> Checksum:
    """The checksum of a record with a write of `size` bytes."""
    return crc32c if size >= LARGE_BYTES else crc32


def _write(fd: int, pieces: Sequence[Piece], size: int, position: int) -> None:
    if size <= JOINED_BYTES:
        pieces = (b"".join(pieces),)
    for first in range(0, len(pieces), PIECES):
        some = pieces[first : first + PIECES]
        wanted = sum(map(len, some))
        written = os.pwritev(fd, some, position)
        if written < wanted:  # the disk may be full, or the record longer than one call may write
            _write_rest(fd, memoryview(b"".join(some))[written:], position + written)
        position += wanted


def _write_rest(fd: int, rest: memoryview, position: int) -> None:
    while rest:
        written = os.pwrite(fd, rest, position)
        rest, position = rest[written:], position + written
