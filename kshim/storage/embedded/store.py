"""Opens the lock, the environment and the writer of a data directory, and closes them in reverse order."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, succeed

from kshim.storage.embedded.ahead import Ahead, log_files
from kshim.storage.embedded.chores import new_chores
from kshim.storage.embedded.data_dir import DataDirLock
from kshim.storage.embedded.environment import Environment
from kshim.storage.embedded.log import EmbeddedLog
from kshim.storage.embedded.logged import Logged
from kshim.storage.embedded.metadata import EmbeddedMetadata
from kshim.storage.embedded.writer import Writer
from kshim.storage.embedded.writes import Write
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
            self._environment = Environment(self._data_dir, sync=True, max_bytes=self._max_bytes)
            try:
                self._open()
            except BaseException:
                self._environment.close()
                raise
        except BaseException:
            self._lock.release()
            raise

    def _open(self) -> None:
        """Read the log, and begin to work."""
        environment = self._environment
        self._ahead = Ahead(self._data_dir, sync=self._sync)
        try:
            logged, seq = load(environment, self._ahead, self._data_dir)
        except OSError as error:
            raise StorageError(f"cannot read the log of {self._data_dir}: {error.strerror}") from None
        writer = Writer(self._reactor, environment, self._ahead, self._data_dir)
        chores = new_chores(environment)
        self.log = EmbeddedLog(environment, writer, chores)
        self.metadata = EmbeddedMetadata(environment, writer)
        writes: list[Write] = []
        if logged:  # the last server was killed
            from kshim.storage.embedded.replay import replayed

            writes = replayed(environment, logged, chores.deletion.pending)
        self.log.replay(writes)
        self.metadata.committed(writes)
        self._writer = writer
        writer.start((self.log, self.metadata), chores, writes, seq)

    def activity(self) -> Activity:
        writer = self._writer
        return Activity() if writer is None else Activity(writer.queued, writer.durations, writer.failure())

    def close(self) -> Deferred[None]:
        if self._writer is None:
            return succeed(None)
        writer, self._writer = self._writer, None
        return writer.close().addCallback(self._release)

    def _release(self, _: None) -> None:
        self._ahead.close()
        self._environment.close()
        self._lock.release()


def load(environment: Environment, ahead: Ahead, data_dir: Path) -> tuple[list[Logged], int]:
    """Read the writes of the log that LMDB lacks; the second is the number of the last write."""
    if log_files(data_dir):
        environment.sync()  # what LMDB has is not read from the log
    with environment.read("log") as transaction:
        applied = environment.applied(transaction)
    logged = ahead.load(applied)
    return logged, logged[-1].seq if logged else applied
