"""A file that reserves room on the disk, so that space can be freed when the disk is full.

To free pages, LMDB first writes some. Writes of records and offsets never use the reserve: they use free
pages of the data file, and are refused before the disk is full. So LMDB never meets a full disk, unless other
programs fill it, and an input/output error means that the disk has failed.
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
"""The space that stays free beside the reserve, because a transaction also writes inner pages of trees."""
FREEING_BYTES = 64 * 1024
"""The least free space for which a transaction that frees pages may make the data file longer."""
OVERHEAD_BYTES = 64 * 1024
"""The size of the pages that even a small transaction may write."""
PAGES = 2
"""A transaction may write pages of so many times its size, because every value begins a page."""
UNASKED_SHARE = 16
"""The free space is read again once one part in so many may be used up: other programs use it, too."""
AGAIN_S = 10.0
"""The pause between two attempts to make the reserve."""


class Room:
    """Decides whether the disk has room for a transaction. Only the writer thread uses it, once that runs."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._file = data_dir / RESERVE_FILE
        self._tried_s = -AGAIN_S
        self._unasked_bytes = 0
        """The bytes that may be written before the free space is read again."""
        self._is_kept = self._is_there()

    def free_bytes(self) -> int:
        """The free space on the disk that this process may use; sys.maxsize if the directory is gone."""
        try:
            disk = os.statvfs(self._data_dir)
        except OSError:
            return sys.maxsize
        return disk.f_frsize * (disk.f_bavail if os.geteuid() else disk.f_bfree)

    def spare_bytes(self) -> int:
        """The free space that records may take: not what stays free, nor the reserve, also while it is given
        up. Changes nothing, so any thread may call it.
        """
        return self.free_bytes() - LEFT_BYTES - (0 if self._is_kept else RESERVE_BYTES)

    def has_free(self, size: int) -> bool:
        """True if the disk has room for a transaction of `size` bytes. Any thread may call it."""
        return self.spare_bytes() >= PAGES * size

    def has(self, size: int) -> bool:
        """True if the disk has room for a transaction of `size` bytes without the reserve. Makes the reserve
        if it is missing and there is room.
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
        """Remove the reserve for a transaction of `size` bytes that frees space. Returns True if the disk has
        room for it now.
        """
        self._is_kept = False
        self._unasked_bytes = 0
        with suppress(OSError):
            self._file.unlink()
        return self.free_bytes() >= FREEING_BYTES + PAGES * size

    def is_short(self) -> bool:
        """True if a write may have failed for want of room on the disk."""
        self._unasked_bytes = 0
        return self.free_bytes() < RESERVE_BYTES + LEFT_BYTES

    def _is_there(self) -> bool:
        try:
            status = self._file.lstat()
        except OSError:
            return False
        return stat.S_ISREG(status.st_mode) and status.st_blocks * 512 >= RESERVE_BYTES

    def _make(self) -> None:
        """Make the reserve: a file whose blocks are allocated."""
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
