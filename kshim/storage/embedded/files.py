"""Opens files of the data directory. It follows no symbolic link, which another user may have put there."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
"""Only the user who runs the server may read files, because records may be secret."""
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The errors of a disk without room."""
_UNSUPPORTED: Final = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


def open_own(path: Path) -> int:
    """Open or create a file for reading and writing. Raises OSError, also for a symbolic link."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return os.open(path, flags, FILE_MODE)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, f"{path.name} is a symbolic link") from None
        raise


def take_room(fd: int, size: int) -> None:
    """Allocate the first `size` bytes of a file on the disk; its content stays. Raises OSError."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(fd, 0, size)
            return
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
    if os.pwrite(fd, os.pread(fd, size, 0).ljust(size, b"\0"), 0) < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def sync_directory(path: Path) -> None:
    """Make the names of a directory's files durable. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
