"""The LMDB environment: its databases, read transactions, and write transactions that make the map grow.

The map is address space, not disk or memory: the file holds what was written. It begins at
`FIRST_MAP_BYTES` and doubles when full, up to the limit of the store. Growing moves the map, so it happens
under `_map_lock`, which every read transaction holds. No read transaction outlives the call that began it:
an open one would also keep LMDB from reusing freed pages.

A commit takes two syncs: of its pages, and then of the page that says where they begin. The second is left to
the next commit, whose first sync does both, or to `sync()`. Until then a loss of power costs the last commit,
but no earlier one and not the file (LMDB's MDB_NOMETASYNC). A commit that changes no page syncs
nothing; LMDB's transaction number tells.

Where the disk is nearly full, the map ends with the pages that the file has, so that only free pages are used
again; a change that frees some may go beyond (`room`).

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
from kshim.storage.embedded.files import FILE_MODE, FULL, open_own, take_room
from kshim.storage.embedded.room import Room
from kshim.storage.embedded.rows import FORMAT, REOPENED
from kshim.storage.interfaces import StorageError, StorageFull

__all__ = ["Environment", "Read", "WriteTransaction"]

FIRST_MAP_BYTES = 1024**3
DELETION_BYTES = 64 * 1024**2
"""How far beyond the limit a change that frees space may go: freeing pages first takes some."""
NO_MORE_PAGES = 1
"""As the limit of the map: LMDB makes it as large as the pages that the file has."""
MAP_LOCK_FILE, MAP_LOCK_BYTES = "lock.mdb", 8192
"""LMDB maps this file, too; a page that the disk has no room for would kill the process."""

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
        """Whether commits must outlive a loss of power; else the system decides when they are on disk."""
        self.is_trusted = True
        """False from a sync that has failed until `reopen`; nothing is read or written in between."""
        self._map_lock = threading.Lock()
        self._room = Room(data_dir)
        self._open()

    def _open(self) -> None:
        refuse_cut_file(self._data_dir)
        self._take_room_for_map_lock()
        self._limit = self._max_bytes
        """How large the map may become for the change that is made."""
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
            # An existing file may be larger than what was asked for.
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
        self._kshim = self._env.open_db(b"kshim", transaction)
        if is_new:
            transaction.put(b"format", FORMAT, db=self._kshim)
        found = transaction.get(b"format", db=self._kshim)
        if found != FORMAT:
            held = "data that is not kshim's" if found is None else f"data of format {found.decode()}"
            raise StorageError(f"data directory {self._data_dir} holds {held}; need format {FORMAT.decode()}")

    def read(self, database: Database) -> "Read":
        """Begin a read transaction, for a `with` that must end before control returns to the reactor."""
        return Read(self, database)

    def begin_read(self, database: Database) -> ReadTransaction:
        """Used by `Read`. Raises lmdb.Error, StorageError."""
        self._map_lock.acquire()
        try:
            self._refuse_untrusted()
            return self._env.begin(db=getattr(self, database), buffers=True)
        except BaseException:
            self._map_lock.release()
            raise

    def end_read(self, transaction: ReadTransaction) -> None:
        """Used by `Read`."""
        transaction.abort()
        self._map_lock.release()

    def write(
        self, change: Callable[[WriteTransaction], None], *, size: int = 0, frees: bool = False
    ) -> bool:
        """Commit what `change` does to a transaction; it is called again with a new one if the map has grown.

        size: how many bytes it writes, about. frees: it frees space or prepares that, so it may use the
        reserve, and go beyond the limit.

        On return the commit outlives this process; once the next write that returns True, or sync(), has
        returned, also a loss of power. False: no page has changed, so the commit has synced nothing. Raises
        StorageFull, StorageError; then nothing was changed, and `is_trusted` says whether what was written
        before can still be made durable.
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
            self._commit(transaction)
        finally:
            transaction.abort()
        return self._env.info()["last_txnid"] == number

    def _commit(self, transaction: WriteTransaction) -> None:
        """If the map or the disk is full, LMDB fails before it syncs; else its sync may have failed.

        LMDB calls a write that is cut short an input/output error, so it is not trusted after that either.
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
        """True if the disk has room for a transaction of `size` bytes. Any thread may ask."""
        return self._room.has_free(size)

    def sync(self) -> None:
        """Make the last commit outlive a loss of power. Raises StorageFull, StorageError; then it may be
        lost, and another sync that succeeds proves nothing.
        """
        self._refuse_untrusted()
        if self.is_synced:
            try:
                self._env.sync(True)
            except lmdb.Error as error:
                self.is_trusted = False
                raise self._failure(error) from None

    def _refuse_untrusted(self) -> None:
        if not self.is_trusted:
            raise StorageError(f"a sync has failed, and {self._data_dir} is not open again")

    def reopen(self) -> None:
        """Begin again with what the data file holds after a commit or sync that has failed.

        The kernel may have dropped pages that it could not write, and may call the next sync a success
        nevertheless. So the file is opened anew: it begins with the last commit or the one before, both
        whole. A commit of its own and a sync make it durable. Raises StorageError; then nothing is trusted
        still.
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
        """How large the map may become where the disk has room."""
        return self._max_bytes + DELETION_BYTES if frees else self._max_bytes

    def _limit_map(self, limit: int) -> None:
        """Make the map no larger than `limit`, but for pages that the file has."""
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
            with suppress(lmdb.Error):  # whatever was reported as durable is so already
                self._env.sync(True)
        self._env.close()


def _is_quota(error: lmdb.Error) -> bool:
    return str(error).endswith(os.strerror(errno.EDQUOT))


class Read:
    """A read transaction for the length of a `with`. LMDB's errors become StorageError."""

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
