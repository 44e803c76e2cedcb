"""Writes on the reactor's thread: numbered, logged, then answered and put into LMDB in the background.

If commits are synced, a thread logs all writes that wait, with one append and one sync, and reports that. If
the system decides when writes reach the disk, a small write is logged and answered at once, on the reactor's
thread.

Offsets are assigned when an append is submitted, so when one write fails, all writes behind it fail, too.
Until all have failed, new ones are refused. Then the ledgers are back at the durable state. What may still be
in the log from failed writes is made void before the log goes on (`Applier.skip_to`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kshim.storage.durations import Durations
from kshim.storage.embedded import applier
from kshim.storage.embedded.appender import Appender
from kshim.storage.embedded.applier import Applier
from kshim.storage.embedded.environment import Environment
from kshim.storage.embedded.writes import Write
from kshim.storage.interfaces import StorageError, StorageFull

if TYPE_CHECKING:
    from pathlib import Path

    from kshim.storage.embedded.ahead import Ahead
    from kshim.storage.embedded.chores import Chores
    from kshim.storage.reactor import FromThreads

INLINE_BYTES = 256 * 1024
"""A larger write is logged by the thread, because it would hold up the reactor."""
BEHIND_BYTES = 64 * 1024**2
"""Logged writes that LMDB does not have yet are in memory. If there are more, the next ones wait."""
VOID: Final = 2**32
"""More numbers than writes can be under way when one fails."""
SAYS_AGAIN_S = 60.0
"""While writes fail, the log has a line about it so often."""
CALM_S = 5.0
"""The time without a failure before a recovery is logged. On a full disk small writes still succeed."""
LARGE_BYTES = 1024 * 1024
"""The size of a large batch. A disk with room for it counts as one that is not full."""
OVERHEAD_BYTES = 4096
"""About how much even a small write may take on the disk."""
SHORT_BYTES = 32 * 1024**2
"""If the disk has less room, no write waits before it is put into LMDB."""
UNASKED_SHARE = 16
"""The free space is read again once one part in so many may be used up: other programs use it, too."""
FULL = "the disk is full: records and offsets are refused"
FAILS = "the disk fails: records and offsets are refused"
logger = Logger()


class Ledger(Protocol):
    """Tracks which writes are durable. Its methods are called on the reactor thread."""

    def committed(self, writes: Sequence[Write]) -> None:
        """Called when `writes` have become durable, before their Deferreds fire."""

    def applied(self, seq: int, partition_nos: Sequence[int]) -> None:
        """Called when LMDB has all writes up to number `seq`. partition_nos: of those since the last call."""

    def notify(self, writes: Sequence[Write]) -> None:
        """Called when the Deferreds of `writes` have fired."""

    def failed(self) -> None:
        """Go back to the durable state: none of the submitted writes will become durable."""

    def take(self, news: object) -> None:
        """Called with the result of a step of a chore."""


class Writer:
    """Runs from start() to close()."""

    def __init__(self, reactor: FromThreads, environment: Environment, ahead: Ahead, data_dir: Path) -> None:
        self._reactor = reactor
        self._environment = environment
        self._ahead = ahead
        self._data_dir = data_dir
        self._appender = Appender(reactor, ahead, data_dir)
        self._applier = Applier(reactor, environment, ahead.release)
        self._seq = self._logged_seq = 0
        self._under_way = 0
        self._behind_bytes = 0
        self._unasked_bytes = 0
        """The bytes that may be written before the free space is read again."""
        self._error: StorageError | None = None
        """Why writes are refused until the log goes on."""
        self._behind: StorageError | None = None
        """Why LMDB does not take what is logged."""
        self._failing = False
        self._failing_since_s = self._said_s = 0.0
        self._failed_at_s = 0.0
        self._failed_with = StorageError()
        self._closed: Deferred[None] | None = None
        self._is_ending = False

    @property
    def durations(self) -> dict[str, Durations]:
        return self._appender.durations

    @property
    def queued(self) -> int:
        """The number of writes that are not durable yet."""
        return self._under_way

    def failure(self) -> str:
        """The reason why writes are refused; empty if none is known.

        A disk without room for the smallest write is full, also while nobody writes. After CALM_S without a
        failure, writes count as accepted if the disk has room. Otherwise clients that avoid a server that is
        not ready would never come back.
        """
        if not self._environment.is_trusted:
            return FAILS
        refused_with = self._error or self._behind
        is_calm = time.monotonic() - self._failed_at_s > CALM_S
        has_room = self._environment.has_room(self._behind_bytes + LARGE_BYTES)
        if refused_with is None and self._environment.room_bytes() < self._behind_bytes + OVERHEAD_BYTES:
            return FULL
        if refused_with is None and (not self._failing or (is_calm and has_room)):
            return ""
        return FULL if isinstance(refused_with or self._failed_with, StorageFull) else FAILS

    def start(self, ledgers: Sequence[Ledger], chores: Chores, logged: Sequence[Write], seq: int) -> None:
        """Start the threads. logged: writes of the log that LMDB lacks; seq: the number of the last write."""
        self._ledgers = ledgers
        self._seq = self._logged_seq = seq
        self._applier.start(self, chores)
        self._appender.start(self)
        if logged:
            self._hand_over(logged)

    def refusal(self, size: int, *, frees: bool = False) -> StorageError | None:
        """Why a write of `size` bytes is refused; None if it is not. frees: it frees space."""
        if self._closed is not None:
            return StorageError("the store is closed")
        if self._error is not None:
            return self._error
        if not self._environment.is_trusted:
            return StorageError(f"a sync has failed, and {self._data_dir} is not open again")
        if frees:
            return None
        if self._behind is not None:
            return self._refused(self._behind)
        self._unasked_bytes -= size + OVERHEAD_BYTES
        if self._unasked_bytes < 0:
            room = self._environment.room_bytes() - self._behind_bytes - size
            if room < SHORT_BYTES:
                self._applier.hurry()  # so that the log needs no more room
            if room < 0:
                return self._refused(self._environment.full())
            self._unasked_bytes = room // UNASKED_SHARE
        return None

    def submit(self, write: Write) -> None:
        """Log a write, unless it is refused. Its Deferred fires, or errbacks StorageError, in the order of
        submission.
        """
        if (refusal := self.refusal(write.size, frees=write.frees)) is not None:
            write.settled.errback(refusal)
        else:
            self.log(write)

    def log(self, write: Write) -> None:
        """Like `submit`, for a write that is not refused."""
        self._seq += 1
        write.seq = self._seq
        is_prompt = not (self._ahead.is_synced or self._under_way) and write.size <= INLINE_BYTES
        if is_prompt and self._appender.room.is_set():
            error = self._appender.append((write,))
            self._under_way += 1
            if error is None:
                self.on_logged((write,))
            else:
                self.on_failed((write,), error)
        else:
            self._under_way += 1
            self._appender.put(write)

    def order(self, order: Callable[[], None]) -> None:
        """Call a function on the thread of LMDB, after all durable writes are in it."""
        self._applier.order(order)

    def close(self) -> Deferred[None]:
        """Refuse new writes. Fires when all submitted writes are settled and the threads have ended."""
        if self._closed is None:
            self._closed = Deferred()
            self._appender.room.set()
            if not self._under_way:
                self._end()
        return self._closed

    # ---- what the threads report

    def on_logged(self, writes: Sequence[Write]) -> None:
        self._under_way -= len(writes)
        self._logged_seq = writes[-1].seq
        if self._failing and time.monotonic() - self._failed_at_s > CALM_S:
            self._failing = False
            logger.warn("storage works again")
        self._hand_over(writes)
        for ledger in self._ledgers:
            ledger.committed(writes)
        for write in writes:
            write.settled.callback(write.result)  # type: ignore[arg-type]
        for ledger in self._ledgers:
            ledger.notify(writes)
        if self._closed is not None and not self._under_way:
            self._end()

    def on_failed(self, writes: Sequence[Write], error: StorageError) -> None:
        self._under_way -= len(writes)
        self._note_failure(error)
        if self._error is None:
            self._error = error
            for ledger in self._ledgers:
                ledger.failed()
        for write in writes:
            write.settled.errback(error)
        if not self._under_way:
            self._recover(error)

    def on_applied(self, seq: int, size: int, partition_nos: Sequence[int]) -> None:
        self._behind_bytes -= size
        if self._behind_bytes <= BEHIND_BYTES:
            self._appender.room.set()
        for ledger in self._ledgers:
            ledger.applied(seq, partition_nos)

    def on_behind(self, error: StorageError | None) -> None:
        if error is not None:
            self._note_failure(error)
        self._behind = error

    def on_news(self, news: object) -> None:
        if self._closed is not None:
            return
        for ledger in self._ledgers:
            ledger.take(news)

    # ----

    def _hand_over(self, writes: Sequence[Write]) -> None:
        self._behind_bytes += sum([write.size for write in writes])
        if self._behind_bytes > BEHIND_BYTES and self._closed is None:
            self._appender.room.clear()
        self._applier.add(writes)

    def _refused(self, error: StorageError) -> StorageError:
        self._note_failure(error)
        return error

    def _note_failure(self, error: StorageError) -> None:
        now_s = time.monotonic()
        self._failed_at_s, self._failed_with = now_s, error
        if not self._failing:
            self._failing, self._failing_since_s, self._said_s = True, now_s, now_s
            logger.error("storage fails: {error}", error=error)
        elif now_s - self._said_s >= SAYS_AGAIN_S:
            self._said_s = now_s
            for_s = round(now_s - self._failing_since_s)
            logger.error("storage fails for {for_s} s: {error}", for_s=for_s, error=error)

    def _recover(self, error: StorageError) -> None:
        """Go on with the log, once all writes that depended on the failed one have failed, too."""
        if self._closed is not None:
            self._end()
        elif isinstance(error, StorageFull):  # the log is as it was before
            self._go_on(self._logged_seq)
        else:
            self._applier.order(self._begin_anew)

    def _begin_anew(self) -> None:
        """Void what the log may hold of failed writes, and begin a log without files. On LMDB's thread."""
        seq = self._logged_seq + VOID
        error = self._applier.skip_to(seq)
        if error is None:
            _, error = applier.result_of(self._ahead.restart)
        if error is None:
            self._reactor.callFromThread(self._go_on, seq)
        else:
            self._applier.order_again(self._begin_anew)

    def _go_on(self, seq: int) -> None:
        self._seq = self._logged_seq = seq
        self._error = None
        self._appender.resume()

    def _end(self) -> None:
        """End the threads, the one after the other."""
        if self._is_ending:
            return
        self._is_ending = True
        self._appender.close()
        self._applier.order(lambda: self._reactor.callFromThread(self._on_end))

    def _on_end(self) -> None:
        self._appender.join()
        self._applier.close()
        self._applier.join()
        assert self._closed is not None
        self._closed.callback(None)
