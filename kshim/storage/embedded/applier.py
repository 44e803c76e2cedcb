"""The thread that puts logged writes into LMDB, many in one transaction, and does the chores.

A write waits in memory until APPLY_BYTES are there or APPLY_S have passed. Then it is put into LMDB and
synced, and the write-ahead log needs it no more. LMDB also stores the number of the last write that it has,
in the same transaction. So after a crash or a failure it is known which writes of the log are to be put into
LMDB again.

If LMDB has no room, the writes stay in the log and in memory, and are tried again.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from twisted.logger import Logger

from kshim.storage.embedded.environment import Environment, WriteTransaction
from kshim.storage.embedded.writes import Delete, Put, Trim, Write, apply
from kshim.storage.interfaces import StorageError, StorageFull

if TYPE_CHECKING:
    from kshim.storage.embedded.chores import Chores
    from kshim.storage.reactor import FromThreads

APPLY_BYTES = 8 * 1024**2
"""This much is put into LMDB at once."""
APPLY_S = 1.0
"""The longest time for which a write waits, while LMDB works."""
TRANSACTION_BYTES = 32 * 1024**2
PAUSES = 2
"""The pause after a step of a chore, as a multiple of the time of the step."""
RETRY_S = 1.0
"""The pause after a failure."""
_BEGIN: Final = object()
"""Something waits."""
_NOW: Final = object()
"""Enough waits."""
_END: Final = object()
logger = Logger()
T = TypeVar("T")


class Owner(Protocol):
    """Called on the reactor's thread."""

    def on_applied(self, seq: int, size: int, partition_nos: Sequence[int]) -> None:
        """LMDB has all writes up to number `seq`; the last of them have `size` bytes."""

    def on_behind(self, error: StorageError | None) -> None:
        """LMDB refuses writes of the log; None: it has taken them at last."""

    def on_news(self, news: object) -> None:
        """A step of a chore has a result."""


class Applier:
    """Runs from start() to close(). `add`, `order` and `close` are called on the reactor's thread."""

    def __init__(
        self, reactor: FromThreads, environment: Environment, release: Callable[[int], None]
    ) -> None:
        """release: called on the thread with the number of the last write that LMDB has durably."""
        self._reactor = reactor
        self._environment = environment
        self._release = release
        self._queue: SimpleQueue[object] = SimpleQueue()
        self._logged: deque[Write] = deque()
        self._logged_bytes = 0
        self._is_noted = False
        """True if the thread knows that something waits."""
        self._writes: list[Write] = []
        """The writes of the transaction that is to be made next."""
        self._apply_at_s: float | None = None
        self._rested_at_s = 0.0
        self._is_behind = False
        self._again: list[Callable[[], None]] = []
        self._again_at_s = 0.0

    def start(self, owner: Owner, chores: Chores) -> None:
        self._owner = owner
        self._chores = chores
        self._thread = threading.Thread(target=self._run, name="kshim-storage", daemon=True)
        self._thread.start()

    def add(self, writes: Sequence[Write]) -> None:
        """Take writes that are durable in the log, in the order of their numbers."""
        self._logged.extend(writes)
        self._logged_bytes += sum([write.size for write in writes])
        if self._logged_bytes >= APPLY_BYTES:
            self._logged_bytes = 0
            self._queue.put(_NOW)
        elif not self._is_noted:
            self._is_noted = True
            self._queue.put(_BEGIN)

    def hurry(self) -> None:
        """Put all writes into LMDB now."""
        self._queue.put(_NOW)

    def order(self, order: Callable[[], None]) -> None:
        """Call a function on the thread once LMDB has all writes that were added."""
        self._queue.put(order)

    def order_again(self, order: Callable[[], None]) -> None:
        """Repeat an order that has failed, after RETRY_S. Called on the thread."""
        self._again.append(order)
        self._again_at_s = time.monotonic() + RETRY_S

    def close(self) -> None:
        """Put all writes into LMDB, and end the thread. `join` waits for that."""
        self._queue.put(_END)

    def join(self) -> None:
        self._thread.join()

    # ---- on the thread

    def _run(self) -> None:
        # A signal that this thread received would not wake the reactor, which handles it.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        item: object = None
        while item is not _END:
            item = self._next()
            if item is _BEGIN:
                if self._apply_at_s is None:
                    self._apply_at_s = time.monotonic() + APPLY_S
                continue
            if item is not None or self._is_apply_due():
                self._apply_all()
            if callable(item):
                item()
            if self._again and self._again_at_s <= time.monotonic():
                self._queue.put(self._again.pop())
            elif self._rested_at_s <= time.monotonic():
                self._do_chore()

    def _next(self) -> object:
        """The next item of the queue; None if it is time for something else."""
        try:
            return self._queue.get(timeout=self._wait_s())
        except Empty:
            return None

    def _wait_s(self) -> float | None:
        """Seconds until something is due: 0 for now, None for never."""
        due_s = [self._rested_at_s] if self._has_work() else []
        if self._apply_at_s is not None:
            due_s.append(self._apply_at_s)
        if self._again:
            due_s.append(self._again_at_s)
        return max(0.0, min(due_s) - time.monotonic()) if due_s else None

    def _has_work(self) -> bool:
        return not self._environment.is_trusted or any(chore.due for chore in self._chores)

    def _is_apply_due(self) -> bool:
        return self._apply_at_s is not None and self._apply_at_s <= time.monotonic()

    def _apply_all(self) -> None:
        """Put all logged writes into LMDB, if it takes them. Those that come meanwhile wait: there might be
        no end of them, and chores are to have their turn.
        """
        self._apply_at_s = None
        self._is_noted = False
        rest = len(self._writes) + len(self._logged)
        while rest > 0 and self._take():
            rest -= len(self._writes)
            if (error := self._apply()) is not None:
                self._apply_at_s = time.monotonic() + RETRY_S
                self._is_behind = True
                self._reactor.callFromThread(self._owner.on_behind, error)
                if isinstance(error, StorageFull):
                    self._free_early()
                return
            if self._is_behind:
                self._is_behind = False
                self._reactor.callFromThread(self._owner.on_behind, None)

    def _take(self) -> bool:
        """Take the writes of the next transaction, unless there are some. Returns False if there are none."""
        size = 0
        while not self._writes or (size and size < TRANSACTION_BYTES):
            try:
                write = self._logged.popleft()
            except IndexError:
                break
            self._writes.append(write)
            size += write.size or 1
        return bool(self._writes)

    def _apply(self) -> StorageError | None:
        """Put the taken writes into LMDB, and sync it. Returns the error if that failed."""
        writes = self._writes
        size = sum([write.size for write in writes])
        _, error = result_of(partial(self._put, writes, size))
        if error is not None:
            return error
        self._writes = []
        self._release(writes[-1].seq)
        for write in writes:
            if isinstance(write, Trim):
                self._chores.trimming.add(write.partition_no, write.log_start_offset)
            elif isinstance(write, Delete):
                self._chores.delete(write.partition_no)
        partition_nos = list({write.partition_no for write in writes if not isinstance(write, Put)})
        self._reactor.callFromThread(self._owner.on_applied, writes[-1].seq, size, partition_nos)
        return None

    def _put(self, writes: Sequence[Write], size: int) -> None:
        environment = self._environment

        def change(transaction: WriteTransaction) -> None:
            found = environment.applied(transaction)
            apply(environment, transaction, [write for write in writes if write.seq > found])
            environment.note_applied(transaction, max(found, writes[-1].seq))

        environment.write(change, size=size, frees=True)
        environment.sync()

    def _free_early(self) -> None:
        """Free what waiting writes allow to free: they are durable in the log, and LMDB lacks room."""
        for write in [*self._writes, *self._logged]:
            if isinstance(write, Trim):
                self._chores.trimming.add(write.partition_no, write.log_start_offset)
            elif isinstance(write, Delete):
                self._chores.delete(write.partition_no)

    def skip_to(self, seq: int) -> StorageError | None:
        """Make sure that no write up to number `seq` is put into LMDB after a crash, other than those that
        LMDB has. Returns the error if that failed. Part of an order.
        """
        if self._writes or self._logged:
            return StorageError("LMDB has not taken all writes")

        def change(transaction: WriteTransaction) -> None:
            self._environment.note_applied(transaction, seq)

        _, error = result_of(partial(self._environment.write, change, frees=True))
        return error or result_of(self._environment.sync)[1]

    def _do_chore(self) -> None:
        if not self._environment.is_trusted:
            self._reopen()
            return
        chore = next((chore for chore in self._chores if chore.due), None)
        if chore is None:
            return
        started_s = time.monotonic()
        try:
            news = chore.step()
        except Exception as error:  # the thread goes on, whatever went wrong
            if not isinstance(error, StorageError):
                logger.failure("a step of {chore} failed", chore=type(chore).__name__)
            self._rested_at_s = time.monotonic() + RETRY_S
            return
        if news is not None:
            self._reactor.callFromThread(self._owner.on_news, news)
        now_s = time.monotonic()
        self._rested_at_s = now_s + PAUSES * (now_s - started_s)

    def _reopen(self) -> None:
        """Open LMDB's file again after a failed commit or sync. Until that succeeds, nothing is read or
        written.
        """
        _, error = result_of(self._environment.reopen)
        if error is None:
            logger.warn("the data file is open again, and what it holds is durable")
            self._apply_at_s = time.monotonic()
        else:
            self._rested_at_s = time.monotonic() + RETRY_S


def result_of(change: Callable[[], T]) -> tuple[T | None, StorageError | None]:
    """Return the result of `change`, or any error of it as a StorageError."""
    try:
        return change(), None
    except StorageError as error:
        return None, error
    except Exception as error:
        return None, StorageError(f"{type(error).__name__}: {error}")
