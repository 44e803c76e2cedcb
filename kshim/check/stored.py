"""Reads a data directory that no server has open. Nothing is created, changed or repaired.

Writes of the write-ahead log that LMDB lacks are put into a transaction of LMDB that is never committed, so
they are checked like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import lmdb

from kshim.storage.embedded.ahead import chain_of
from kshim.storage.embedded.data_dir import DataDirLock
from kshim.storage.embedded.data_file import DATA_FILE, refuse_cut_file
from kshim.storage.embedded.environment import Database
from kshim.storage.embedded.logged import decode
from kshim.storage.embedded.replay import replayed
from kshim.storage.embedded.rows import APPLIED, FORMAT, FORMAT_WITHOUT_LOG, PARTITION_KEY
from kshim.storage.embedded.writes import apply
from kshim.storage.interfaces import StorageDamaged, StorageError

if TYPE_CHECKING:
    ReadTransaction = lmdb.Transaction[memoryview]
else:
    ReadTransaction = lmdb.Transaction

MAX_DATABASES = 64
SPARE_BYTES = 64 * 1024**2


class Damaged(StorageError):
    """The data file itself is damaged and cannot be read."""


class _Uncommitted:
    """Stands for the server's environment, with one transaction for all reads and changes."""

    def __init__(self, transaction: ReadTransaction, databases: Mapping[bytes, Any]) -> None:
        self.transaction = transaction
        for name in get_args(Database):
            setattr(self, name, databases[name.encode()])

    @contextmanager
    def read(self, database: Database) -> Iterator[_OfDatabase]:
        yield _OfDatabase(self.transaction, getattr(self, database))


class _OfDatabase:
    """The transaction, for one database unless another is named."""

    def __init__(self, transaction: ReadTransaction, database: Any) -> None:
        self._transaction, self._database = transaction, database

    def get(self, key: bytes, default: Any = None, db: Any = None) -> Any:
        return self._transaction.get(key, default, db=db or self._database)

    def cursor(self, db: Any = None) -> Any:
        return self._transaction.cursor(db or self._database)


class Reading(NamedTuple):
    """A place where reading begins: a database, and the first key."""

    database: str
    first: bytes


class Stored:
    """One read transaction for a `with` block. Raises StorageError, DataDirLocked, Damaged.

    deadly: readings that are known to end the process, and so raise Damaged. begins: is called with each
    reading that begins.
    """

    def __init__(
        self,
        data_dir: Path,
        deadly: Container[Reading] = (),
        begins: Callable[[Reading], object] = lambda reading: None,
    ) -> None:
        self._data_dir, self._deadly, self._begins = data_dir, deadly, begins
        file = data_dir / DATA_FILE
        if not file.is_file():
            raise StorageError(f"{data_dir} is not a data directory: it has no {DATA_FILE}")
        self._lock = DataDirLock(data_dir)
        try:
            refuse_cut_file(data_dir)
            self._open()
        except StorageDamaged as error:
            self._lock.release()
            raise Damaged(str(error)) from None
        except lmdb.Error as error:
            self._lock.release()
            raise Damaged(f"{file} cannot be read: {error}") from None
        except BaseException:
            self._lock.release()
            raise
        held = self.get("kshim", b"format")
        if held is None or bytes(held) not in (FORMAT, FORMAT_WITHOUT_LOG):
            self.close()
            raise StorageError(f"{file} does not hold data of kshim's format {FORMAT.decode()}")

    def _open(self) -> None:
        self._env = lmdb.Environment(
            str(self._data_dir), readonly=True, lock=False, max_dbs=MAX_DATABASES, readahead=True
        )
        self._main = self._env.begin(buffers=True)
        self._open_databases()
        self._take_log(self._data_dir)

    def _open_anew(self) -> None:
        """Open the file again: LMDB refuses all further reads of a transaction that met a damaged page."""
        self._main.abort()
        self._env.close()
        self._open()

    def _open_databases(self) -> None:
        self._databases = {
            bytes(name): self._env.open_db(bytes(name), self._main, create=False)
            for name in list(self._main.cursor().iternext(keys=True, values=False))
        }

    def _take_log(self, data_dir: Path) -> None:
        """Put the writes of the log that LMDB lacks into a transaction that is never committed."""
        held = self.get("kshim", APPLIED)
        try:
            records = chain_of(data_dir, 0 if held is None else int(bytes(held))).records
        except OSError as error:
            raise Damaged(f"the log of {data_dir} cannot be read: {error.strerror}") from None
        if not records:
            return
        self._main.abort()
        self._env.close()
        size = (data_dir / DATA_FILE).stat().st_size + sum(len(record.body) for record in records)
        self._env = lmdb.Environment(
            str(data_dir), lock=False, max_dbs=MAX_DATABASES, map_size=2 * size + SPARE_BYTES
        )
        self._main = self._env.begin(write=True, buffers=True)
        self._databases = {
            name.encode(): self._env.open_db(name.encode(), self._main) for name in get_args(Database)
        }
        self._databases[b"kshim"] = self._env.open_db(b"kshim", self._main)
        environment: Any = _Uncommitted(self._main, self._databases)
        logged = [decode(record.seq, record.body) for record in records]
        deleted = [PARTITION_KEY.unpack(key)[0] for key, _ in self.rows("deleted")]
        apply(environment, environment.transaction, replayed(environment, logged, deleted))

    def __enter__(self) -> Stored:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._main.abort()
        self._env.close()
        self._lock.release()

    def entries(self, database: str) -> int:
        found = self._databases.get(database.encode())
        return 0 if found is None else self._main.stat(found)["entries"]

    def get(self, database: str, key: bytes) -> memoryview | None:
        found = self._databases.get(database.encode())
        return None if found is None else self._main.get(key, db=found)

    def rows(self, database: str, first: bytes = b"") -> Iterator[tuple[memoryview, memoryview]]:
        """The rows of a database from key `first` on, by key; none if it was never created.

        Views are valid until the next row. Raises Damaged.
        """
        found = self._databases.get(database.encode())
        if found is None:
            return
        reading = Reading(database, first)
        if reading in self._deadly:
            raise Damaged(f"the pages of {database} are damaged: the process that reads them dies")
        self._begins(reading)
        try:
            cursor = self._main.cursor(found)
            if not first or cursor.set_range(first):
                yield from cursor.iternext()
        except lmdb.Error as error:
            self._open_anew()
            raise Damaged(f"the pages of {database} are damaged: {error}") from None
