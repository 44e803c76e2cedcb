"""The room on the disk: a file that is kept in reserve, so that space can be freed when the disk is full.

To free pages LMDB first writes some. Records and offsets leave the reserve alone: they are refused before the
disk is full, and use what is free in the data file. So LMDB never meets a full disk, unless others fill it,
and an input/output error means that the disk has failed.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from kshim.storage.embedded.files import FILE_MODE, take_room

RESERVE_FILE: Final = "kshim.reserve"
RESERVE_BYTES = 8 * 1024**2
LEFT_BYTES = 1024**2
"""Left free beside the reserve: a transaction also writes pages that lead to the records."""
FREEING_BYTES = 64 * 1024
"""Free space without which nothing is written behind the end of the data file, even to free some."""
OVERHEAD_BYTES = 64 * 1024
"""The pages that a small transaction may write."""
PAGES = 2
"""A transaction may write so many times its size: every value begins a page."""
UNASKED_SHARE = 16
"""The disk is asked for its free space when this part of it may be used up: others may use it, too."""
AGAIN_S = 10.0
"""The pause before the reserve is made again, if that failed."""


class Room:
    """How much of the disk may be used. Belongs to the writer thread once that runs."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._file = data_dir / RESERVE_FILE
        self._tried_s = -AGAIN_S
        self._unasked_bytes = 0
        """How much may be written before the disk is asked again for its free space."""
        self._is_kept = self._is_there()

    def free_bytes(self) -> int:
        """The free space on the disk that this process may use; plenty, if the directory is gone."""
        try:
            disk = os.statvfs(self._data_dir)
        except OSError:
            return sys.maxsize
        return disk.f_frsize * (disk.f_bavail if os.geteuid() else disk.f_bfree)

    def has_free(self, size: int) -> bool:
        """True if the disk has room for a transaction of `size` bytes. Changes nothing, so any thread may
        ask.
        """
        return self.free_bytes() >= LEFT_BYTES + PAGES * size

    def has(self, size: int) -> bool:
        """True if a transaction of `size` bytes leaves the reserve alone. Makes the reserve if it is missing
        and there is room.
        """
        self._unasked_bytes -= OVERHEAD_BYTES + PAGES * size
        if self._unasked_bytes > 0 and self._is_kept:
            return True
        free = self.free_bytes() - LEFT_BYTES - PAGES * size
        self._unasked_bytes = free // UNASKED_SHARE
        if self._is_kept or free < 0:
            return free >= 0
        if free >= RESERVE_BYTES:
            self._make()
            return True
        return False

    def give_up(self, size: int) -> bool:
        """Give up the reserve to a transaction of `size` bytes that frees space; return whether there is room
        for it now.
        """
        self._is_kept = False
        self._unasked_bytes = 0
        with suppress(OSError):
            self._file.unlink()
        return self.free_bytes() >= FREEING_BYTES + PAGES * size

    def is_short(self) -> bool:
        """True if the disk may have had no room for a write that has failed."""
        self._unasked_bytes = 0
        return self.free_bytes() < RESERVE_BYTES + LEFT_BYTES

    def _is_there(self) -> bool:
        try:
            status = self._file.lstat()
        except OSError:
            return False
        return stat.S_ISREG(status.st_mode) and status.st_blocks * 512 >= RESERVE_BYTES

    def _make(self) -> None:
        """Fill the file, so that its blocks are taken."""
        now_s = time.monotonic()
        if now_s - self._tried_s < AGAIN_S:
            return
        self._tried_s = now_s
        try:
            with suppress(FileNotFoundError):
                self._file.unlink()
            fd = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
            try:
                take_room(fd, RESERVE_BYTES)
            finally:
                os.close(fd)
        except OSError:
            with suppress(OSError):
                self._file.unlink()
        else:
            self._is_kept = True
