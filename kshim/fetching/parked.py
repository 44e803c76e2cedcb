"""A Fetch that waits for enough new records, for the end of its time, or for the next request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kshim.turns.promise import Promise

if TYPE_CHECKING:
    from kshim.fetching.reads import PartitionReads
    from kshim.fetching.sessions import CachedPartition, FetchSession
    from kshim.storage.clock import TimerClock
    from kshim.storage.interfaces import Log
    from kshim.turns import Signal

T = TypeVar("T")


class ParkedFetch(Promise[T]):
    """Waits until the partitions of a session have as many more bytes as `reads` lacked. The session watches
    them.

    Only new records are read to count their bytes. If only one byte is missing, it is enough to compare
    offsets.
    """

    def __init__(self, log: Log, session: FetchSession, reads: PartitionReads) -> None:
        self._log = log
        self._session = session
        self._reads = reads
        self._missing_bytes = reads.missing_bytes

    def wait(self, clock: TimerClock, max_wait_ms: int, hurry: Signal, answer: Callable[[], T]) -> Promise[T]:
        """Return `answer()`, as soon as there are enough bytes, `max_wait_ms` is over, `hurry` fires, or
        another request of the session is parked.
        """
        self._make: Callable[[], T] | None = answer
        self._timer = clock.callLater(max_wait_ms / 1000, self._finish)
        self._session.park(self._log, self._moved, self._finish)
        hurry.watch(self._finish)
        return self

    def _moved(self, cached: CachedPartition) -> None:
        """Count the new records of a partition whose log has moved.

        If its high watermark has not moved forwards, something else has changed: the partition was deleted,
        has another leader, or starts later. Then the Fetch is answered at once.
        """
        assert cached.partition_no is not None
        position = self._reads.position(cached)
        offsets = self._log.offsets(cached.partition_no)
        if offsets.high_watermark <= cached.end_seen:
            self._finish()
            return
        cached.end_seen = offsets.high_watermark
        end = offsets.last_stable_offset if self._reads.committed else offsets.high_watermark
        if not position.left_bytes or end <= position.next_offset:
            return
        if self._missing_bytes > 1:
            records = self._log.read(
                cached.partition_no, position.next_offset, position.left_bytes, up_to=end
            )
            self._missing_bytes -= position.count(records, end)
        else:
            self._missing_bytes = 0
        if self._missing_bytes <= 0:
            self._finish()

    def _finish(self) -> None:
        """Answer, cancel the timer, and stop watching. Does nothing the second time."""
        make, self._make = self._make, None
        if make is None:
            return
        timer = self._timer
        del self._timer  # else timer and Fetch would keep each other in memory
        if timer.active():
            timer.cancel()
        self._session.unpark()
        try:
            answer: T | Exception = make()
        except Exception as error:
            answer = error
        if (do := self.answer(answer)) is not None:
            do()
