"""The writer thread: takes all that is queued, makes it one transaction, and tells the reactor in one call.

Offsets are assigned when an append is queued, so an append that fails takes all that is queued behind it with
it. Writes carry the generation in which they were queued; when one fails the writer refuses what is left of
its generation, and the reactor begins another with what is durable. The order of their messages is all that
ties the two threads together: neither waits for the other.
"""

import threading
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads
from twisted.logger import Logger

from kshim.storage.embedded.compaction import Compactor, Pass
from kshim.storage.embedded.deletion import Deletion
from kshim.storage.embedded.environment import Environment
from kshim.storage.embedded.writes import Write, apply
from kshim.storage.interfaces import StorageError

TRANSACTION_BYTES = 32 * 1024 * 1024
logger = Logger()


class Ledger(Protocol):
    """Who keeps account of what is durable. Called on the reactor thread."""

    def committed(self, writes: Sequence[Write]) -> None:
        """These are durable now; their Deferreds fire next."""

    def notify(self, writes: Sequence[Write]) -> None:
        """The Deferreds of these have fired."""

    def failed(self) -> None:
        """Nothing that is queued will become durable: go back to what is."""

    def compacted(self, ended: Pass) -> None:
        """A pass has come to its end."""


class Writer:
    """Runs from start() to close(). Everything but `_run` and what it calls belongs to the reactor thread."""

    def __init__(self, reactor: IReactorFromThreads, environment: Environment) -> None:
        self._reactor = reactor
        self._environment = environment
        self._queue: SimpleQueue[tuple[int, Write] | int | Pass | None] = SimpleQueue()
        self._generation = 0
        self._failing = False
        self._closed: Deferred[None] | None = None

    def start(self, ledger: Ledger, deletion: Deletion, compactor: Compactor) -> None:
        self._ledger = ledger
        self._thread = threading.Thread(
            target=self._run, args=(deletion, compactor), name="kshim-storage", daemon=True
        )
        self._thread.start()

    def submit(self, write: Write) -> None:
        """Queue a write. Its Deferred fires, or errbacks StorageError, in the order of submission."""
        if self._closed is not None:
            write.settled.errback(StorageError("the store is closed"))
        else:
            self._queue.put((self._generation, write))

    def delete(self, partition_no: int) -> None:
        """Free a partition's space, behind what is queued and in steps between what is queued later."""
        self._queue.put(partition_no)

    def compact(self, wanted: Pass) -> None:
        """Make a pass over a partition, in steps between what is queued."""
        self._queue.put(wanted)

    def close(self) -> Deferred[None]:
        """Fires when all that was queued is settled and the thread has ended."""
        if self._closed is None:
            self._closed = Deferred()
            self._queue.put(None)
        return self._closed

    def _on_committed(self, writes: Sequence[Write]) -> None:
        if self._failing:
            self._failing = False
            logger.info("storage works again")
        self._ledger.committed(writes)
        for write in writes:
            write.settled.callback(write.result)  # type: ignore[arg-type]
        self._ledger.notify(writes)

    def _on_failed(self, writes: Sequence[Write], generation: int, error: StorageError) -> None:
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

    # -------------------------------------------------------------------------------- on the writer thread

    def _run(self, deletion: Deletion, compactor: Compactor) -> None:
        failed_generation, error = -1, StorageError()
        is_open = True
        while is_open:
            queued, is_open = self._take(deletion, compactor)
            refused = [write for generation, write in queued if generation <= failed_generation]
            if refused:
                self._reactor.callFromThread(self._on_failed, refused, failed_generation, error)
            # The others are of one generation: the next begins only when the reactor has heard of a failure.
            writes = [write for generation, write in queued if generation > failed_generation]
            if writes and (failure := self._commit(writes)) is not None:
                failed_generation, error = queued[-1][0], failure
                self._reactor.callFromThread(self._on_failed, writes, failed_generation, error)
            elif writes:
                self._reactor.callFromThread(self._on_committed, writes)
                deletion.retry()
            if deletion.due:
                deletion.step()
            if compactor.wait_s() == 0 and (ended := compactor.step()) is not None:
                self._reactor.callFromThread(self._ledger.compacted, ended)
        self._reactor.callFromThread(self._on_end)

    def _take(self, deletion: Deletion, compactor: Compactor) -> tuple[list[tuple[int, Write]], bool]:
        """All that is queued, up to TRANSACTION_BYTES, and whether more can come.

        Waits for the first, or until there is something else to do.
        """
        taken: list[tuple[int, Write]] = []
        size = 0
        try:
            while size < TRANSACTION_BYTES:
                item = self._queue.get(timeout=0 if taken or deletion.due else compactor.wait_s())
                if item is None:
                    return taken, False
                if isinstance(item, int):
                    deletion.add(item)
                    compactor.forget(item)
                elif isinstance(item, Pass):
                    compactor.add(item)
                else:
                    taken.append(item)
                    size += item[1].size
        except Empty:
            pass
        return taken, True

    def _commit(self, writes: Sequence[Write]) -> StorageError | None:
        try:
            self._environment.write(lambda transaction: apply(self._environment, transaction, writes))
        except StorageError as error:
            return error
        except Exception as error:  # what is queued must be answered, whatever went wrong
            return StorageError(f"{type(error).__name__}: {error}")
        return None
