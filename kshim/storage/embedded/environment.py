"""The LMDB environment: its databases, read transactions, and write transactions that make the map grow.

The map is address space, not disk or memory: the file is only as large as its pages. The map begins at
`FIRST_MAP_BYTES` and doubles when it is full, up to the limit of the store. Growing moves the map, so it
happens under `_map_lock`, which every read transaction holds. No read transaction outlives the call that
began it: an open one would also keep LMDB from reusing freed pages.

A commit takes two syncs: one of its pages, and one of the meta page, which says where they begin. The second
is left to the next commit, whose first sync does both, or to `sync()`. Until then a loss of power costs the
last commit, but no earlier one and not the file (LMDB's MDB_NOMETASYNC). A commit that changes no page syncs
nothing; then LMDB's transaction number stays the same.

When the disk is nearly full, the map is limited to the pages that the file already has, so that writes use
only free pages. A change that frees pages may go beyond (`room`).

After a failed sync nothing is trusted (`reopen`).
"""

import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, get_args

import lmdb

from kshim.storage.embedded.data_file import refuse_cut_file
from kshim.storage.embedded.files import FILE_MODE, FULL, open_own, sync_directory, take_room
from kshim.storage.embedded.room import PAGES, Room
from kshim.storage.embedded.rows import APPLIED, FORMAT, FORMAT_WITHOUT_LOG, REOPENED
from kshim.storage.interfaces import StorageError, StorageFull

__all__ = ["Environment", "Read", "WriteTransaction"]

FIRST_MAP_BYTES = 1024**3
DELETION_BYTES = 64 * 1024**2
"""A change that frees space may exceed the limit by so much, because freeing pages first takes some."""
OWN_PAGES = 16
"""About the number of pages that LMDB itself uses."""
NO_MORE_PAGES = 1
"""A limit of the map for which LMDB makes the map as large as the pages that the file has."""
MAP_LOCK_FILE, MAP_LOCK_BYTES = "lock.mdb", 8192
"""LMDB maps this file, too. If the disk had no room for one of its pages, access would kill the process."""

if TYPE_CHECKING:
    ReadTransaction = lmdb.Transaction[memoryview]
    WriteTransaction = lmdb.Transaction[bytes]
else:
    ReadTransaction = WriteTransaction = lmdb.Transaction


Database = Literal["log", "meta", "starts", "producers", "aborted", "deleted", "compacted"]


class Environment:
    """Opens or creates the databases in `data_dir`. Raises StorageError."""

    def __init__(self, data_dir: Path, *, sync: bool, max_bytes: int) -> None:
        self._data_dir = data_dir
        self._max_bytes = max_bytes
        self.is_synced = sync
        """True if commits must survive a loss of power. If False, the system decides when they reach the
        disk.
        """
        self.is_trusted = True
        """False after a failed sync until `reopen` has succeeded; nothing is read or written meanwhile."""
        self._is_named = False
        """True if the file's name is durable, too."""
        self._map_lock = threading.Lock()
        self._room = Room(data_dir)
        self._file_bytes = self._free_bytes = 0
        """About the size of the file, and of its pages that no database uses."""
        self._open()

    def _open(self) -> None:
        refuse_cut_file(self._data_dir)
        self._take_room_for_map_lock()
        self._limit = self._max_bytes
        """The largest size of the map for the current change, in bytes."""
        self._map_bytes = min(FIRST_MAP_BYTES, self._max_bytes)
        try:
            self._env = lmdb.Environment(
                str(self._data_dir),
                map_size=self._map_bytes,
                max_dbs=16,
                max_spare_txns=2,
                sync=self.is_synced,
                metasync=False,
                mode=FILE_MODE,
            )
            # An existing file may be larger than the requested map.
            self._map_bytes = self._env.info()["map_size"]
            try:
                self._open_databases()
            except BaseException:
                self._env.close()
                raise
        except lmdb.Error as error:
            raise StorageError(f"data directory {self._data_dir} cannot be opened: {error}") from None

    def _take_room_for_map_lock(self) -> None:
        try:
            fd = open_own(self._data_dir / MAP_LOCK_FILE)
            try:
                take_room(fd, MAP_LOCK_BYTES)
            finally:
                os.close(fd)
        except OSError as error:
            kind = StorageFull if error.errno in FULL else StorageError
            raise kind(f"cannot use data directory {self._data_dir}: {error.strerror}") from None

    def _open_databases(self) -> None:
        self._env.reader_check()  # entries of killed readers would keep freed pages from being reused
        with self._env.begin(write=True) as transaction:
            self._check_format(transaction)
            self.log = self._env.open_db(b"log", transaction)
            self.meta = self._env.open_db(b"meta", transaction)
            self.starts = self._env.open_db(b"starts", transaction)
            self.producers = self._env.open_db(b"producers", transaction)
            self.aborted = self._env.open_db(b"aborted", transaction)
            self.deleted = self._env.open_db(b"deleted", transaction)
            self.compacted = self._env.open_db(b"compacted", transaction)
            self._used_pages = self._count_pages(transaction)
        self._note_pages(self._env.info()["last_pgno"] + 1)

    def _check_format(self, transaction: WriteTransaction) -> None:
        is_new = transaction.stat(self._env.open_db(None, transaction))["entries"] == 0
        self._kshim = self._env.open_db(b"kshim", transaction)
        found = transaction.get(b"format", db=self._kshim)
        if is_new or found == FORMAT_WITHOUT_LOG:
            transaction.put(b"format", FORMAT, db=self._kshim)
            found = FORMAT
        if found != FORMAT:
            held = "data that is not kshim's" if found is None else f"data of format {found.decode()}"
            raise StorageError(f"data directory {self._data_dir} holds {held}; need format {FORMAT.decode()}")

    def read(self, database: Database) -> "Read":
        """A read transaction, for a `with` that must end before control returns to the reactor."""
        return Read(self, database)

    def begin_read(self, database: Database) -> ReadTransaction:
        """Begin a read transaction for `Read`. Raises lmdb.Error, StorageError."""
        self._map_lock.acquire()
        try:
            self._refuse_untrusted()
            return self._env.begin(db=getattr(self, database), buffers=True)
        except BaseException:
            self._map_lock.release()
            raise

    def end_read(self, transaction: ReadTransaction) -> None:
        """End a read transaction of `Read`."""
        transaction.abort()
        self._map_lock.release()

    def write(
        self, change: Callable[[WriteTransaction], None], *, size: int = 0, frees: bool = False
    ) -> bool:
        """Call `change` with a write transaction, and commit it. If the map must grow, `change` is called
        again with a new transaction.

        size: about how many bytes `change` writes. frees: `change` frees space or prepares that, so it may
        use the reserve, and go beyond the limit.

        On return the commit survives the end of this process. It survives a loss of power once sync(), or the
        next write that returns True, has returned. Returns False if no page has changed, so that the commit
        has synced nothing. Raises StorageFull, StorageError; then nothing was changed, and `is_trusted` says
        whether earlier commits can still be made durable.
        """
        self._refuse_untrusted()
        self._limit_map(self._largest(frees=frees) if self._room.has(size) else NO_MORE_PAGES)
        while True:
            try:
                return self._write(change)
            except lmdb.MapFullError:
                self._grow(size, frees=frees)
            except lmdb.Error as error:
                raise self._failure(error) from None

    def _write(self, change: Callable[[WriteTransaction], None]) -> bool:
        transaction = self._env.begin(write=True)
        number = transaction.id()
        try:
            change(transaction)
            self._used_pages = self._count_pages(transaction)
            self._commit(transaction)
        finally:
            transaction.abort()
        info = self._env.info()
        self._note_pages(info["last_pgno"] + 1)
        return info["last_txnid"] == number

    def _commit(self, transaction: WriteTransaction) -> None:
        """Commit; after a failure that may be that of a sync, set `is_trusted` to False.

        If the map or the disk is full, LMDB fails before it syncs. For a write that is cut short it reports
        an input/output error, which counts as a failed sync unless the disk is short of room.
        """
        try:
            transaction.commit()
        except lmdb.MapFullError:
            raise
        except lmdb.Error as error:
            is_full = self._room.is_short() and isinstance(error, lmdb.DiskError)
            self.is_trusted = is_full or _is_quota(error)
            raise

    def has_room(self, size: int) -> bool:
        """True if the disk has room for a transaction of `size` bytes. Any thread may call it."""
        return self._room.has_free(size)

    def _count_pages(self, transaction: WriteTransaction) -> int:
        databases = [self._kshim, *(getattr(self, name) for name in get_args(Database))]
        stats = [transaction.stat(database) for database in databases]
        return sum(each["branch_pages"] + each["leaf_pages"] + each["overflow_pages"] for each in stats)

    def _note_pages(self, pages: int) -> None:
        page_bytes = self._env.stat()["psize"]
        self._file_bytes = pages * page_bytes
        self._free_bytes = max(0, pages - self._used_pages - OWN_PAGES) * page_bytes

    def room_bytes(self) -> int:
        """About the size of the writes for which there is room, if they also go through a log. Any thread may
        call it.
        """
        spare = self._room.spare_bytes() // PAGES
        return max(0, min(spare, self._max_bytes - self._file_bytes)) + self._free_bytes

    def full(self) -> StorageFull:
        """Say why there is no room."""
        if self._max_bytes - self._file_bytes < self._room.spare_bytes():
            return StorageFull(f"{self._data_dir} has reached its limit of {self._max_bytes} bytes")
        return StorageFull(f"no space left for {self._data_dir}")

    def applied(self, transaction: ReadTransaction | WriteTransaction) -> int:
        """The number of the last write of the write-ahead log that these databases have."""
        return int(bytes(transaction.get(APPLIED, b"0", db=self._kshim)))

    def note_applied(self, transaction: WriteTransaction, seq: int) -> None:
        transaction.put(APPLIED, b"%d" % seq, db=self._kshim)

    def sync(self) -> None:
        """Make the last commit survive a loss of power. Raises StorageFull, StorageError; then the commit may
        be lost, even if a later sync succeeds.
        """
        self._refuse_untrusted()
        if self.is_synced:
            try:
                self._env.sync(True)
                if not self._is_named:
                    sync_directory(self._data_dir)
                    self._is_named = True
            except lmdb.Error as error:
                self.is_trusted = False
                raise self._failure(error) from None
            except OSError as error:
                raise StorageError(f"syncing {self._data_dir}: {error.strerror}") from None

    def _refuse_untrusted(self) -> None:
        if not self.is_trusted:
            raise StorageError(f"a sync has failed, and {self._data_dir} is not open again")

    def reopen(self) -> None:
        """Open the data file again after a commit or sync has failed, and trust its contents.

        The kernel may have dropped pages that it could not write, and the next sync may succeed nevertheless.
        So the file is opened anew. It then holds the last commit or the one before, both whole. Another
        commit and a sync make that durable. Raises StorageError; then `is_trusted` stays False.
        """
        with self._map_lock:
            self._env.close()
            self._open()
        self.is_trusted = True
        try:
            for database in get_args(Database):
                with self.read(database) as transaction:
                    transaction.cursor().last()
            self.write(self._note_reopening, frees=True)
            self.sync()
        except BaseException:
            self.is_trusted = False
            raise

    def _note_reopening(self, transaction: WriteTransaction) -> None:
        count = int(transaction.get(REOPENED, b"0", db=self._kshim))
        transaction.put(REOPENED, b"%d" % (count + 1), db=self._kshim)

    def _failure(self, error: lmdb.Error) -> StorageError:
        if isinstance(error, lmdb.DiskError) or _is_quota(error):
            return StorageFull(f"no space left for {self._data_dir}: {error}")
        return StorageError(f"writing to {self._data_dir}: {error}")

    def _largest(self, *, frees: bool) -> int:
        """The largest size of the map while the disk has room, in bytes."""
        return self._max_bytes + DELETION_BYTES if frees else self._max_bytes

    def _limit_map(self, limit: int) -> None:
        """Limit the map to `limit` bytes, or to the pages that the file has, if these are more."""
        if limit != self._limit and limit < self._map_bytes:
            self._resize(limit)
        self._limit = limit

    def _grow(self, size: int, *, frees: bool) -> None:
        if self._limit == NO_MORE_PAGES:
            if not frees or not self._room.give_up(size):
                raise StorageFull(f"no space left for {self._data_dir}")
            self._limit = self._largest(frees=True)
        if self._map_bytes >= self._limit:
            raise StorageFull(f"{self._data_dir} has reached its limit of {self._max_bytes} bytes")
        self._resize(min(max(2 * self._map_bytes, FIRST_MAP_BYTES), self._limit))

    def _resize(self, size: int) -> None:
        with self._map_lock:
            self._env.set_mapsize(size)
        self._map_bytes = self._env.info()["map_size"]

    def close(self) -> None:
        if self.is_trusted:
            with suppress(lmdb.Error):  # commits that were reported as durable do not need it
                self._env.sync(True)
        self._env.close()


def _is_quota(error: lmdb.Error) -> bool:
    return str(error).endswith(os.strerror(errno.EDQUOT))


class Read:
    """A read transaction within a `with`. LMDB's errors become StorageError."""

    __slots__ = ("_database", "_environment", "_transaction")

    def __init__(self, environment: Environment, database: Database) -> None:
        self._environment = environment
        self._database = database

    def __enter__(self) -> ReadTransaction:
        try:
            self._transaction = self._environment.begin_read(self._database)
        except lmdb.Error as error:
            raise StorageError(f"reading: {error}") from None
        return self._transaction

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._environment.end_read(self._transaction)
        if isinstance(error, lmdb.Error):
            raise StorageError(f"reading: {error}") from None
