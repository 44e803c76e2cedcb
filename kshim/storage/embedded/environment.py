"""The LMDB environment: its databases, read transactions, and write transactions that make the map grow.

The map is address space, not disk or memory: the file holds what was written. It begins at
`FIRST_MAP_BYTES` and doubles when full, up to the limit of the store. Growing moves the map, so it happens
under `_map_lock`, which every read transaction holds. No read transaction outlives the call that began it:
an open one would also keep LMDB from reusing freed pages.

A commit takes two syncs: of its pages, and then of the page that says where they begin. The second is left to
the next commit, whose first sync does both, or to `sync()`. Until then a loss of power costs the last commit,
but no earlier one and not the file (LMDB's MDB_NOMETASYNC).
"""

import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import lmdb

from kshim.storage.embedded.rows import FORMAT
from kshim.storage.interfaces import StorageError, StorageFull

__all__ = ["Environment", "Read", "WriteTransaction"]

FIRST_MAP_BYTES = 1024**3
DELETION_BYTES = 64 * 1024**2
"""How far beyond the limit deletions and compaction may go: freeing pages first takes some."""
NO_ROOM_BYTES = 1024**2

if TYPE_CHECKING:
    ReadTransaction = lmdb.Transaction[memoryview]
    WriteTransaction = lmdb.Transaction[bytes]
else:
    ReadTransaction = WriteTransaction = lmdb.Transaction


class Environment:
    """Opens or creates the databases in `data_dir`. Raises StorageError."""

    def __init__(self, data_dir: Path, *, sync: bool, max_bytes: int) -> None:
        self._data_dir = data_dir
        self._max_bytes = max_bytes
        self.is_synced = sync
        """Whether commits must outlive a loss of power; else the system decides when they are on disk."""
        self._map_bytes = min(FIRST_MAP_BYTES, max_bytes)
        self._map_lock = threading.Lock()
        try:
            self._env = lmdb.Environment(
                str(data_dir),
                map_size=self._map_bytes,
                max_dbs=16,
                max_spare_txns=2,
                sync=sync,
                metasync=False,
                mode=0o644,
            )
            # An existing file may be larger than what was asked for.
            self._map_bytes = self._env.info()["map_size"]
            try:
                self._open_databases()
            except BaseException:
                self._env.close()
                raise
        except lmdb.Error as error:
            raise StorageError(f"data directory {data_dir} cannot be opened: {error}") from None

    def _open_databases(self) -> None:
        self._env.reader_check()  # readers that were killed would keep freed pages from being reused
        with self._env.begin(write=True) as transaction:
            self._check_format(transaction)
            self.log = self._env.open_db(b"log", transaction)
            self.meta = self._env.open_db(b"meta", transaction)
            self.starts = self._env.open_db(b"starts", transaction)
            self.producers = self._env.open_db(b"producers", transaction)
            self.aborted = self._env.open_db(b"aborted", transaction)
            self.deleted = self._env.open_db(b"deleted", transaction)
            self.compacted = self._env.open_db(b"compacted", transaction)

    def _check_format(self, transaction: WriteTransaction) -> None:
        is_new = transaction.stat(self._env.open_db(None, transaction))["entries"] == 0
        about = self._env.open_db(b"kshim", transaction)
        if is_new:
            transaction.put(b"format", FORMAT, db=about)
        found = transaction.get(b"format", db=about)
        if found != FORMAT:
            held = "data that is not kshim's" if found is None else f"data of format {found.decode()}"
            raise StorageError(f"data directory {self._data_dir} holds {held}; need format {FORMAT.decode()}")

    def read(self, database: "lmdb._Database") -> "Read":
        """Begin a read transaction, for a `with` that must end before control returns to the reactor."""
        return Read(self._env, self._map_lock, database)

    def write(self, change: Callable[[WriteTransaction], None], *, beyond_bytes: int = 0) -> None:
        """Commit what `change` does to a transaction; it is called again with a new one if the map has grown.

        On return the commit outlives this process; once the next write or sync() has returned, also a loss of
        power. Raises StorageFull, StorageError; then nothing was changed.
        """
        while True:
            try:
                transaction = self._env.begin(write=True)
                try:
                    change(transaction)
                    transaction.commit()
                finally:
                    transaction.abort()
                return
            except lmdb.MapFullError:
                self._grow(self._max_bytes + beyond_bytes)
            except lmdb.Error as error:
                raise self._failure(error) from None

    def sync(self) -> None:
        """Make the last commit outlive a loss of power. Raises StorageFull, StorageError."""
        if self.is_synced:
            try:
                self._env.sync(True)
            except lmdb.Error as error:
                raise self._failure(error) from None

    def _failure(self, error: lmdb.Error) -> StorageError:
        # On a full disk a write is often cut short first, which LMDB calls an input/output error.
        if isinstance(error, lmdb.DiskError) or shutil.disk_usage(self._data_dir).free < NO_ROOM_BYTES:
            return StorageFull(f"no space left for {self._data_dir}: {error}")
        return StorageError(f"writing to {self._data_dir}: {error}")

    def _grow(self, limit: int) -> None:
        if self._map_bytes >= limit:
            raise StorageFull(f"{self._data_dir} has reached its limit of {self._max_bytes} bytes")
        self._map_bytes = min(2 * self._map_bytes, limit)
        with self._map_lock:
            self._env.set_mapsize(self._map_bytes)

    def close(self) -> None:
        with suppress(lmdb.Error):  # whatever was reported as durable is so already
            self._env.sync(True)
        self._env.close()


class Read:
    """A read transaction for the length of a `with`. LMDB's errors become StorageError."""

    __slots__ = ("_database", "_env", "_lock", "_transaction")

    def __init__(self, env: lmdb.Environment, lock: threading.Lock, database: "lmdb._Database") -> None:
        self._env = env
        self._lock = lock
        self._database = database

    def __enter__(self) -> ReadTransaction:
        self._lock.acquire()
        try:
            self._transaction = self._env.begin(db=self._database, buffers=True)
        except BaseException as error:
            self._lock.release()
            if isinstance(error, lmdb.Error):
                raise StorageError(f"reading: {error}") from None
            raise
        return self._transaction

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transaction.abort()
        self._lock.release()
        if isinstance(error, lmdb.Error):
            raise StorageError(f"reading: {error}") from None
