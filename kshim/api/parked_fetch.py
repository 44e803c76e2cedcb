"""A Fetch that waits: for enough new records, for its time to be up, or for a request behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from twisted.internet.defer import Deferred

from schemas.record_batch import batches, decode_header

if TYPE_CHECKING:
    from kshim.context import Clock, Signal
    from kshim.storage.interfaces import Log

Answer = TypeVar("Answer")


@dataclass(slots=True)
class Position:
    """How far the records of a partition have been counted. left_bytes: how many more it may add to the
    answer.
    """

    partition_no: int
    next_offset: int
    left_bytes: int

    def count(self, records: bytes, high_watermark: int) -> int:
        """The bytes that `records`, read from `next_offset` on, are worth.

        Where they end before the high watermark, the next batch did not fit: then the partition is worth all
        that it may add, else a Fetch whose min_bytes is no sum of whole batches would wait for nothing.
        """
        for batch in batches(records):
            self.next_offset = decode_header(batch).next_offset
        cut_short = self.next_offset < high_watermark
        counted = max(len(records), self.left_bytes) if cut_short else len(records)
        self.left_bytes = max(0, self.left_bytes - counted)
        return counted


class ParkedFetch:
    """Waits for `missing_bytes` behind `positions`. Only what is new is looked at; for one byte, only the
    offset.
    """

    __slots__ = ("_done", "_log", "_missing_bytes", "_release")

    def __init__(self, log: Log, positions: Sequence[Position], missing_bytes: int) -> None:
        self._log = log
        self._missing_bytes = missing_bytes
        self._done: Deferred[None] = Deferred()
        self._release = [
            log.watch(position.partition_no, partial(self._moved, position)) for position in positions
        ]

    def wait(
        self, clock: Clock, max_wait_ms: int, hurry: Signal, answer: Callable[[], Answer]
    ) -> Deferred[Answer]:
        """`answer()`, when there is enough, or after `max_wait_ms`, or once `hurry` fires."""
        timer = clock.callLater(max_wait_ms / 1000, self._finish)
        self._release.append(lambda: timer.active() and timer.cancel())
        hurry.watch(self._finish)
        return self._done.addCallback(lambda _: answer())

    def _moved(self, position: Position) -> None:
        """The high watermark of a partition has moved. If not forwards, the partition was deleted."""
        if not position.left_bytes:
            return
        high_watermark = self._log.offsets(position.partition_no).high_watermark
        if self._missing_bytes > 1 and high_watermark > position.next_offset:
            records = self._log.read(position.partition_no, position.next_offset, position.left_bytes)
            self._missing_bytes -= position.count(records, high_watermark)
        else:
            self._missing_bytes = 0
        if self._missing_bytes <= 0:
            self._finish()

    def _finish(self) -> None:
        """The first reason to finish counts; everything that was waited for is let go."""
        if not self._done.called:
            for release in self._release:
                release()
            self._release.clear()
            self._done.callback(None)
