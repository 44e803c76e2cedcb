"""Reads a data directory that no server has open. Nothing is created, changed or repaired."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import lmdb

from kshim.storage.embedded.data_dir import DataDirLock
from kshim.storage.embedded.data_file import DATA_FILE, refuse_cut_file
from kshim.storage.embedded.rows import FORMAT
from kshim.storage.interfaces import StorageDamaged, StorageError

if TYPE_CHECKING:
    ReadTransaction = lmdb.Transaction[memoryview]
else:
    ReadTransaction = lmdb.Transaction

MAX_DATABASES = 64


class Damaged(StorageError):
    """The data file itself is damaged and cannot be read."""


class Stored:
    """One read transaction for a `with` block. Raises StorageError, DataDirLocked, Damaged."""

    def __init__(self, data_dir: Path) -> None:
        file = data_dir / DATA_FILE
        if not file.is_file():
            raise StorageError(f"{data_dir} is not a data directory: it has no {DATA_FILE}")
        self._lock = DataDirLock(data_dir)
        try:
            refuse_cut_file(data_dir)
            self._env = lmdb.Environment(
                str(data_dir), readonly=True, lock=False, max_dbs=MAX_DATABASES, readahead=True
            )
            self._main = self._env.begin(buffers=True)
            self._databases = {
                bytes(name): self._env.open_db(bytes(name), self._main, create=False)
                for name in list(self._main.cursor().iternext(keys=True, values=False))
            }
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
        if held is None or bytes(held) != FORMAT:
            self.close()
            raise StorageError(f"{file} does not hold data of kshim's format {FORMAT.decode()}")

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

    def rows(self, database: str) -> Iterator[tuple[memoryview, memoryview]]:
        """All rows of a database, by key; none if it was never created.

        Views are valid until the next row.
        """
        found = self._databases.get(database.encode())
        if found is None:
            return
        try:
            yield from self._main.cursor(found)
        except lmdb.Error as error:
            raise StorageError(f"the pages of {database} are damaged: {error}") from None
