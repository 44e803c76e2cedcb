"""The writer thread: commits all queued writes in one transaction, and reports that to the reactor thread.

A transaction becomes durable with the next one. If more writes are queued, the writer commits these and then
reports the transaction before them; else it syncs. So under load a transaction costs one sync instead of two.

Offsets are assigned when an append is queued, so when an append fails, all writes behind it fail, too. Every
write carries the generation in which it was queued. When a write fails, the writer refuses the rest of its
generation, and the reactor thread begins another generation from the durable state. The two threads depend
only on the order of their messages: neither waits for the other. Writes that free space depend on no append,
so on a full disk they go on.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kshim.storage.durations import Durations
from kshim.storage.embedded.environment import Environment, WriteTransaction
from kshim.storage.embedded.writes import Write, apply
from kshim.storage.interfaces import StorageError, StorageFull

if TYPE_CHECKING:
    from kshim.storage.reactor import FromThreads


TRANSACTION_BYTES = 32 * 1024 * 1024
PAUSES = 2
"""The pause after a step of a chore, as a multiple of the time of the step."""
CALM_S = 5.0
"""The time without a failure before a recovery is logged. On a full disk small writes still succeed."""
LARGE_BYTES = 1024 * 1024
"""The size of a large batch. A disk with room for it counts as one that is not full."""
FULL = "the disk is full: records and offsets are refused"
FAILS = "the disk fails: records and offsets are refused"
RETRY_S = 1.0
"""The pause after a failed step."""
logger = Logger()
T = TypeVar("T")


class Ledger(Protocol):
    """Tracks which writes are durable. Its methods are called on the reactor thread."""

    def committed(self, writes: Sequence[Write]) -> None:
        """Called when `writes` have become durable, before their Deferreds fire."""

    def notify(self, writes: Sequence[Write]) -> None:
        """Called when the Deferreds of `writes` have fired."""

    def failed(self) -> None:
        """Go back to the durable state: none of the queued writes will become durable."""

    def take(self, news: object) -> None:
        """Called with the result of a step of a chore."""


class Chore(Protocol):
    """Work that the writer thread does in small steps while nothing is queued."""

    @property
    def due(self) -> bool:
        """True if step() has something to do."""
        ...

    def step(self) -> object:
        """Do a little work. Returns a result for the ledger, or None. After an error it is tried again."""
        ...


class Writer:
    """Runs from start() to close(). Only `_run` and the methods that it calls run on the writer thread."""

    def __init__(self, reactor: FromThreads, environment: Environment) -> None:
        self._reactor = reactor
        self._environment = environment
        self._queue: SimpleQueue[tuple[int, Write] | Callable[[], None] | None] = SimpleQueue()
        self._generation = 0
        self._failing = False
        self._closed: Deferred[None] | None = None
        self._rested_at = self._failed_at = 0.0
        self._held: Sequence[Write] = ()
        self._held_generation = self._failed_generation = -1
        self._error = self._failed_with = StorageError()
        self.durations = {"commit": Durations(), "sync": Durations()}
        """The durations of commits, including the writing, and of syncs outside a commit."""

    def failure(self) -> str:
        """The reason why writes are refused; empty if none is known.

        After CALM_S without a failure, writes count as accepted if the disk has room. Otherwise clients that
        avoid a server that is not ready would never come back.
        """
        if not self._environment.is_trusted:
            return FAILS
        is_calm = time.monotonic() - self._failed_at > CALM_S
        if not self._failing or (is_calm and self._environment.has_room(LARGE_BYTES)):
            return ""
        is_full = isinstance(self._failed_with, StorageFull)
        return FULL if is_full else FAILS

    @property
    def queued(self) -> int:
        """The number of waiting writes."""
        return self._queue.qsize()

    def start(
        self, ledger: Ledger, chores: Sequence[Chore], note: Callable[[WriteTransaction], None]
    ) -> None:
        """Start the thread. chores: by priority. note: called within every write transaction."""
        self._ledger = ledger
        self._chores = chores
        self._note = note
        self._thread = threading.Thread(target=self._run, name="kshim-storage", daemon=True)
        self._thread.start()

    def submit(self, write: Write) -> None:
        """Queue a write. Its Deferred fires, or errbacks StorageError, in the order of submission."""
        if self._closed is not None:
            write.settled.errback(StorageError("the store is closed"))
        else:
            self._queue.put((self._generation, write))

    def order(self, order: Callable[[], None]) -> None:
        """Call `order` on the writer thread after all queued writes, to give a chore work."""
        self._queue.put(order)

    def close(self) -> Deferred[None]:
        """Refuse new writes. Fires when all queued writes are settled and the thread has ended."""
        if self._closed is None:
            self._closed = Deferred()
            self._queue.put(None)
        return self._closed

    def _on_committed(self, writes: Sequence[Write]) -> None:
        if self._failing and time.monotonic() - self._failed_at > CALM_S:
            self._failing = False
            logger.warn("storage works again")
        self._ledger.committed(writes)
        for write in writes:
            write.settled.callback(write.result)  # type: ignore[arg-type]
        self._ledger.notify(writes)

    def _on_failed(self, writes: Sequence[Write], generation: int, error: StorageError) -> None:
        self._failed_at, self._failed_with = time.monotonic(), error
        if not self._failing:
            self._failing = True
            logger.error("storage fails: {error}", error=error)
        if generation == self._generation:
            self._generation += 1
            self._ledger.failed()
        for write in writes:
            write.settled.errback(error)

    def _on_end(self) -> None:
        self._thread.join()
        assert self._closed is not None
        self._closed.callback(None)

    # ---- on the writer thread

    def _run(self) -> None:
        # A signal that this thread received would not wake the reactor, which handles it.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        is_open = True
        while is_open:
            queued, size, is_open = self._take()
            if queued:
                self._write(queued, size)
            if not (is_open and self._environment.is_synced) or self._queue.empty():
                self._sync()
            if self._wait_s() == 0:
                self._do_chore()
        self._reactor.callFromThread(self._on_end)

    def _write(self, queued: Sequence[tuple[int, Write]], size: int) -> None:
        """Commit the queued writes and hold them. The commit makes the writes held before it durable."""
        is_new = queued[0][0] > self._failed_generation
        writes = [write for _, write in queued] if is_new else self._not_refused(queued)
        # All have one generation: the reactor thread begins another only after the report of a failure.
        if not writes:
            return
        generation = queued[-1][0]
        error = self._commit(writes, size, generation)
        if error is None:
            return
        if isinstance(error, StorageFull) and self._environment.is_trusted:
            others = [write for write in writes if not write.frees]
            if 0 < len(others) < len(writes):
                self._sync()
                self._fail(others, generation, error)
                writes = [write for write in writes if write.frees]
                error = self._commit(writes, sum(write.size for write in writes), generation)
                if error is None:
                    return
        if self._environment.is_trusted:
            self._sync()
        else:  # this commit's sync should have made the held writes durable, too
            writes, self._held = [*self._held, *writes], ()
        self._fail(writes, generation, error)

    def _not_refused(self, queued: Sequence[tuple[int, Write]]) -> list[Write]:
        """Refuse the writes of failed generations, and return the others. On a full disk, writes that free
        space are not refused.
        """
        failed, is_full = self._failed_generation, isinstance(self._error, StorageFull)
        writes: list[Write] = []
        refused: list[Write] = []
        for generation, write in queued:
            is_refused = generation <= failed and not (is_full and write.frees)
            (refused if is_refused else writes).append(write)
        if refused:
            self._fail(refused, failed, self._error)
        return writes

    def _commit(self, writes: Sequence[Write], size: int, generation: int) -> StorageError | None:
        """Commit writes of `size` bytes and hold them. Returns the error if that failed."""
        frees = all(write.frees for write in writes)
        began_s = time.perf_counter()
        has_changed, error = _result_of(
            lambda: self._environment.write(partial(self._apply, writes), size=size, frees=frees)
        )
        self.durations["commit"].add(time.perf_counter() - began_s)
        if error is None:
            if has_changed:
                self._settle_held()
            self._held, self._held_generation = [*self._held, *writes], generation
        return error

    def _apply(self, writes: Sequence[Write], transaction: WriteTransaction) -> None:
        self._note(transaction)
        apply(self._environment, transaction, writes)

    def _sync(self) -> None:
        """Make the held writes durable; no-op if there are none."""
        error = None
        if self._held:
            began_s = time.perf_counter()
            error = _result_of(self._environment.sync)[1]
            self.durations["sync"].add(time.perf_counter() - began_s)
        if error is None:
            self._settle_held()
        else:
            held, self._held = self._held, ()
            self._fail(held, self._held_generation, error)

    def _settle_held(self) -> None:
        if self._held:
            self._reactor.callFromThread(self._on_committed, self._held)
            self._held = ()

    def _fail(self, writes: Sequence[Write], generation: int, error: StorageError) -> None:
        self._failed_generation, self._error = generation, error
        self._reactor.callFromThread(self._on_failed, writes, generation, error)

    def _take(self) -> tuple[list[tuple[int, Write]], int, bool]:
        """Take the queued writes, up to TRANSACTION_BYTES. Returns them, their size in bytes, and False once
        the queue has ended.

        Waits for the first write or until a chore is due, but not while writes are held.
        """
        taken: list[tuple[int, Write]] = []
        size = 0
        try:
            while size < TRANSACTION_BYTES:
                item = self._queue.get(timeout=0 if taken or self._held else self._wait_s())
                if item is None:
                    return taken, size, False
                if isinstance(item, tuple):
                    taken.append(item)
                    size += item[1].size
                else:
                    item()
        except Empty:
            pass
        return taken, size, True

    def _wait_s(self) -> float | None:
        """Seconds until the next step of a chore: 0 for now, None for never."""
        if self._environment.is_trusted and not any(chore.due for chore in self._chores):
            return None
        return max(0.0, self._rested_at - time.monotonic())

    def _do_chore(self) -> None:
        if not self._environment.is_trusted:
            self._reopen()
            return
        chore = next(chore for chore in self._chores if chore.due)
        started_at = time.monotonic()
        try:
            news = chore.step()
        except Exception as error:  # the writer goes on, whatever went wrong
            if not isinstance(error, StorageError):
                logger.failure("a step of {chore} failed", chore=type(chore).__name__)
            self._rested_at = time.monotonic() + RETRY_S
            return
        if news is not None:
            self._reactor.callFromThread(self._ledger.take, news)
        now = time.monotonic()
        self._rested_at = now + PAUSES * (now - started_at)

    def _reopen(self) -> None:
        """Open the data file again after a failed commit or sync. Until that succeeds, nothing is read or
        written.
        """
        _, error = _result_of(self._environment.reopen)
        if error is None:
            logger.warn("the data file is open again, and what it holds is durable")
        else:
            self._rested_at = time.monotonic() + RETRY_S


def _result_of(change: Callable[[], T]) -> tuple[T | None, StorageError | None]:
    """Return the result of `change`, or any error of it as a StorageError, which the queued writes get."""
    try:
        return change(), None
    except StorageError as error:
        return None, error
    except Exception as error:
        return None, StorageError(f"{type(error).__name__}: {error}")
