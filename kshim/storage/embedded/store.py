"""Opens the lock, the environment and the writer of a data directory, and closes them in reverse order."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, succeed

from kshim.storage.embedded.chores import new_chores
from kshim.storage.embedded.data_dir import DataDirLock
from kshim.storage.embedded.environment import Environment
from kshim.storage.embedded.log import EmbeddedLog
from kshim.storage.embedded.metadata import EmbeddedMetadata
from kshim.storage.embedded.writer import Writer
from kshim.storage.interfaces import Activity, StorageError

if TYPE_CHECKING:
    from kshim.storage.reactor import FromThreads


__all__ = ["EmbeddedStore"]


class EmbeddedStore:
    """Implements `kshim.storage.interfaces.Store`; `log` and `metadata` exist from open() on.

    `max_bytes` bounds the file: appends beyond it fail with StorageFull. With `sync=False` the system
    decides when a commit reaches the disk: a crash of this process loses nothing, a loss of power may lose
    commits.
    """

    log: EmbeddedLog
    metadata: EmbeddedMetadata

    def __init__(
        self,
        data_dir: str | os.PathLike[str],
        reactor: FromThreads,
        *,
        sync: bool = True,
        max_bytes: int = 1024**4,
    ) -> None:
        self._data_dir = Path(data_dir)
        self._reactor = reactor
        self._sync = sync
        self._max_bytes = max_bytes
        self._writer: Writer | None = None

    def open(self) -> None:
        self._lock = DataDirLock(self._data_dir)
        try:
            self._environment = Environment(self._data_dir, sync=self._sync, max_bytes=self._max_bytes)
        except BaseException:
            self._lock.release()
            raise
        self._writer = writer = Writer(self._reactor, self._environment)
        self._chores = chores = new_chores(self._environment)
        self.log = EmbeddedLog(self._environment, writer, chores)
        self.metadata = EmbeddedMetadata(self._environment, writer)
        writer.start(self.log, chores, chores.deletion.note)

    def activity(self) -> Activity:
        writer = self._writer
        return Activity() if writer is None else Activity(writer.queued, writer.durations, writer.failure())

    def close(self) -> Deferred[None]:
        if self._writer is None:
            return succeed(None)
        writer, self._writer = self._writer, None
        return writer.close().addCallback(self._release)

    def _release(self, _: None) -> None:
        with suppress(StorageError):  # if writing fails, the topic's deletion is not durable either
            self._chores.deletion.close()
        self._environment.close()
        self._lock.release()
