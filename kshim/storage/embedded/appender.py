"""The thread that appends writes to the write-ahead log: one append and one sync for all that wait."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from enum import Enum, auto
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Protocol

from kshim.storage.durations import Durations
from kshim.storage.embedded.files import FULL
from kshim.storage.interfaces import StorageError, StorageFull

if TYPE_CHECKING:
    from pathlib import Path

    from kshim.storage.embedded.ahead import Ahead
    from kshim.storage.embedded.writes import Write
    from kshim.storage.reactor import FromThreads

APPEND_BYTES = 32 * 1024**2
"""About how much one append writes at most."""


class _Order(Enum):
    """An order to the thread, to be obeyed after the writes that were queued before."""

    RESUME = auto()
    END = auto()


class Owner(Protocol):
    """Called on the reactor's thread with the results."""

    def on_logged(self, writes: Sequence[Write]) -> None: ...
    def on_failed(self, writes: Sequence[Write], error: StorageError) -> None: ...


class Appender:
    """Runs from start() to close(). After a failure all writes fail until resume()."""

    def __init__(self, reactor: FromThreads, ahead: Ahead, data_dir: Path) -> None:
        self._reactor = reactor
        self._ahead = ahead
        self._data_dir = data_dir
        self._queue: SimpleQueue[Write | _Order] = SimpleQueue()
        self._error: StorageError | None = None
        self.room = threading.Event()
        """Set if LMDB is not too far behind the log."""
        self.room.set()
        self.durations = {"commit": Durations(), "sync": Durations()}
        """The durations of appends with their syncs, and of the syncs alone."""

    def start(self, owner: Owner) -> None:
        self._owner = owner
        self._thread = threading.Thread(target=self._run, name="kshim-log", daemon=True)
        self._thread.start()

    def put(self, write: Write) -> None:
        """Append a write, after all earlier ones."""
        self._queue.put(write)

    def resume(self) -> None:
        """Try again from the next write on."""
        self._queue.put(_Order.RESUME)

    def close(self) -> None:
        """Append what is queued, and end the thread. `join` waits for that."""
        self._queue.put(_Order.END)

    def join(self) -> None:
        self._thread.join()

    def append(self, writes: Sequence[Write]) -> StorageError | None:
        """Append and sync writes. Returns the error if that failed.

        The reactor's thread may call it while nothing is queued.
        """
        began_s = time.perf_counter()
        is_appended = False
        try:
            self._ahead.append(writes)
            is_appended = True
            if self._ahead.is_synced:
                written_s = time.perf_counter()
                self._ahead.sync()
                self.durations["sync"].add(time.perf_counter() - written_s)
        except OSError as error:
            return self._failure(error, is_appended=is_appended)
        except Exception as error:  # the writes are answered, whatever went wrong
            return StorageError(f"{type(error).__name__}: {error}")
        finally:
            self.durations["commit"].add(time.perf_counter() - began_s)
        return None

    def _failure(self, error: OSError, *, is_appended: bool) -> StorageError:
        """StorageFull says that the log is as it was before. After a failed sync it never is."""
        if error.errno in FULL and not is_appended:
            return StorageFull(f"no space left for {self._data_dir}: {os.strerror(error.errno or 0)}")
        return StorageError(f"writing to {self._data_dir}: {error.strerror}")

    # ---- on the thread

    def _run(self) -> None:
        # A signal that this thread received would not wake the reactor, which handles it.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        last: _Order | None = None
        while last is not _Order.END:
            writes, last = self._take()
            if writes:
                self._log(writes)
            if last is _Order.RESUME:
                self._error = None

    def _log(self, writes: Sequence[Write]) -> None:
        self.room.wait()
        if self._error is None:
            self._error = self.append(writes)
        if self._error is None:
            self._reactor.callFromThread(self._owner.on_logged, writes)
        else:
            self._reactor.callFromThread(self._owner.on_failed, writes, self._error)

    def _take(self) -> tuple[list[Write], _Order | None]:
        """Take the queued writes, up to about APPEND_BYTES. The second is what ended them; None if that is
        the queue's end for now.
        """
        taken: list[Write] = []
        size = 0
        try:
            while size < APPEND_BYTES:
                item = self._queue.get(block=not taken)
                if isinstance(item, _Order):
                    return taken, item
                taken.append(item)
                size += item.size
        except Empty:
            pass
        return taken, None
