"""The writer thread: takes all that is queued, makes it one transaction, and tells the reactor in one call.

A transaction becomes durable with the next one. If more is queued, the writer commits that and then reports
the transaction before it; else it syncs. So under load a transaction costs one sync instead of two.

Offsets are assigned when an append is queued, so when an append fails, all that is queued behind it fails,
too. Every write carries the generation in which it was queued. When one fails, the writer refuses the rest of
its generation, and the reactor begins another from what is durable. Only the order of their messages ties the
two threads together: neither waits for the other. What frees space depends on no append, and goes on.
"""

import signal
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads
from twisted.logger import Logger

from kshim.storage.durations import Durations
from kshim.storage.embedded.environment import Environment, WriteTransaction
from kshim.storage.embedded.writes import Write, apply
from kshim.storage.interfaces import StorageError, StorageFull

TRANSACTION_BYTES = 32 * 1024 * 1024
PAUSES = 2
"""The pause after a step of a chore, as a multiple of the time of the step."""
CALM_S = 5.0
"""Time without a failure before a recovery is logged: on a full disk small writes still succeed."""
LARGE_BYTES = 1024 * 1024
"""A write for which a disk has room again: that of a large batch."""
FULL = "the disk is full: records and offsets are refused"
FAILS = "the disk fails: records and offsets are refused"
RETRY_S = 1.0
"""The pause after a step that failed."""
logger = Logger()
T = TypeVar("T")


class Ledger(Protocol):
    """Keeps account of what is durable. Called on the reactor thread."""

    def committed(self, writes: Sequence[Write]) -> None:
        """`writes` are durable now; their Deferreds fire next."""

    def notify(self, writes: Sequence[Write]) -> None:
        """The Deferreds of `writes` have fired."""

    def failed(self) -> None:
        """Go back to what is durable: nothing that is queued will be."""

    def tell(self, news: object) -> None:
        """Take in what a step of a chore has returned."""


class Chore(Protocol):
    """Work for when nothing is queued, done a little at a time, on the writer thread alone."""

    @property
    def due(self) -> bool:
        """Whether step() has something to do."""
        ...

    def step(self) -> object:
        """Do a little. Returns news for the ledger, or None. If it raises, it is tried again later."""
        ...


class Writer:
    """Runs from start() to close(). Everything but `_run` and what it calls belongs to the reactor thread."""

    def __init__(self, reactor: IReactorFromThreads, environment: Environment) -> None:
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
        """How long transactions took, with what they wrote, and syncs without one."""

    def failure(self) -> str:
        """Why writes are refused, in words; empty if they are not, as far as is known.

        After CALM_S without a failure they count as taken where the disk has room, so that clients that stay
        away from a server that is not ready come back to it.
        """
        if not self._environment.is_trusted:
            return FAILS
        is_calm = time.monotonic() - self._failed_at > CALM_S
        if not self._failing or (is_calm and self._environment.has_room(LARGE_BYTES)):
            return ""
        is_full = isinstance(self._failed_with, StorageFull)
        return (
            "the disk is full: records and offsets are refused"
            if is_full
            else "the disk fails: records and offsets are refused"
        )

    @property
    def queued(self) -> int:
        """How many writes wait."""
        return self._queue.qsize()

    def start(
        self, ledger: Ledger, chores: Sequence[Chore], note: Callable[[WriteTransaction], None]
    ) -> None:
        """The first chore that is due goes first. `note` is called inside every write transaction."""
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
        """Call `order` on the writer thread after what is queued, to give a chore something to do."""
        self._queue.put(order)

    def close(self) -> Deferred[None]:
        """Fires when all that was queued is settled and the thread has ended."""
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
        # A signal that this thread received would not wake the reactor, which is to act on it.
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
        """Commit the queued writes, and hold them; the commit makes the writes held before durable."""
        is_new = queued[0][0] > self._failed_generation
        writes = [write for _, write in queued] if is_new else self._not_refused(queued)
        # They are of one generation: the next begins only when the reactor is told of a failure.
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
        else:  # the sync of this commit was to make the held writes durable, too
            writes, self._held = [*self._held, *writes], ()
        self._fail(writes, generation, error)

    def _not_refused(self, queued: Sequence[tuple[int, Write]]) -> list[Write]:
        """Refuse what is of a generation that has failed; return the rest."""
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
        """Commit writes of `size` bytes and hold them, or return why that failed."""
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
        """Make the held writes durable, if there are any."""
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
        """Take all that is queued, up to TRANSACTION_BYTES. Also returns its size, and whether more can come.

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
        except Exception as error:  # the writer must go on, whatever went wrong
            if not isinstance(error, StorageError):
                logger.failure("a step of {chore} failed", chore=type(chore).__name__)
            self._rested_at = time.monotonic() + RETRY_S
            return
        if news is not None:
            self._reactor.callFromThread(self._ledger.tell, news)
        now = time.monotonic()
        self._rested_at = now + PAUSES * (now - started_at)

    def _reopen(self) -> None:
        """Begin again after a failed commit or sync; until that succeeds, nothing is read or written."""
        _, error = _result_of(self._environment.reopen)
        if error is None:
            logger.warn("the data file is open again, and what it holds is durable")
        else:
            self._rested_at = time.monotonic() + RETRY_S


def _result_of(change: Callable[[], T]) -> tuple[T | None, StorageError | None]:
    """What `change` returns, or raises as a StorageError: queued writes must be answered in any case."""
    try:
        return change(), None
    except StorageError as error:
        return None, error
    except Exception as error:
        return None, StorageError(f"{type(error).__name__}: {error}")
