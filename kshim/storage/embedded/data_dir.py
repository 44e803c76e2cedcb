"""A lock on a file in the data directory, so that only one server at a time uses it. The lock ends with the
process.
"""

import fcntl
import os
from pathlib import Path

from kshim.storage.embedded.files import FILE_MODE, open_own
from kshim.storage.interfaces import DataDirLocked, StorageError

LOCK_FILE = "kshim.lock"
DIRECTORY_MODE = 0o700


class DataDirLock:
    """Holds the lock from construction to release(). Raises DataDirLocked, StorageError."""

    def __init__(self, data_dir: Path) -> None:
        try:
            data_dir.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            self._fd = open_own(data_dir / LOCK_FILE)
            for file in data_dir.glob("*.mdb"):  # earlier versions made them readable for everybody
                if not file.is_symlink():
                    file.chmod(FILE_MODE)
        except OSError as error:
            raise StorageError(f"cannot use data directory {data_dir}: {error.strerror}") from None
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._fd, 20).decode(errors="replace").strip()
            os.close(self._fd)
            by = f"process {holder}" if holder else "another process"
            raise DataDirLocked(f"data directory {data_dir} is in use by {by}") from None
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, b"%d\n" % os.getpid(), 0)
        except OSError as error:
            self.release()
            raise StorageError(f"cannot write to data directory {data_dir}: {error.strerror}") from None

    def release(self) -> None:
        os.close(self._fd)
