"""The writes of one partition that are durable in the write-ahead log, and perhaps not in LMDB yet.

LMDB may be ahead of what the reactor's thread knows, never behind: a write leaves this memory when the
reactor's thread has heard that LMDB has it. So a reader takes what LMDB has, and what follows from here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from kshim.storage.chunk import Chunk
from kshim.storage.producers import NO_CHANGES, Aborted, Changes

if TYPE_CHECKING:
    from kshim.storage.embedded.writes import Append, Forget, Trim

_seq = attrgetter("seq")


class Recent:
    """Appends, changes of producers and the log start offset, in the order of the writes."""

    __slots__ = ("_appends", "_changes", "_last_offsets", "_start_seq", "start")

    def __init__(self) -> None:
        self._appends: list[Append] = []
        self._last_offsets: list[int] = []
        self._changes: list[Append | Forget] = []
        self.start = 0
        """The log start offset, unless LMDB has a higher one."""
        self._start_seq = 0

    def append(self, write: Append) -> None:
        self._appends.append(write)
        self._last_offsets.append(write.last_offset)
        if write.changes is not NO_CHANGES:
            self._changes.append(write)

    def forget(self, write: Forget) -> None:
        self._changes.append(write)

    def trim(self, write: Trim) -> None:
        self.start = max(self.start, write.log_start_offset)
        self._start_seq = write.seq

    def drop(self, seq: int) -> bool:
        """Drop the writes up to number `seq`. Returns True if none is left."""
        count = bisect_right(self._appends, seq, key=_seq)
        del self._appends[:count], self._last_offsets[:count]
        del self._changes[: bisect_right(self._changes, seq, key=_seq)]
        return not (self._appends or self._changes or self._start_seq > seq)

    @property
    def last(self) -> Append | None:
        return self._appends[-1] if self._appends else None

    def holds(self, offset: int) -> bool:
        """True if a read from `offset` on needs nothing from LMDB."""
        return bool(self._appends) and self._appends[0].result.base_offset <= offset

    def since(self, offset: int) -> Iterator[Chunk]:
        """The appends from the one that holds `offset` on."""
        for index in range(bisect_left(self._last_offsets, offset), len(self._appends)):
            append = self._appends[index]
            yield Chunk(append.last_offset, append.max_timestamp_so_far, memoryview(append.batches))

    def changes(self) -> Iterator[Changes]:
        for write in self._changes:
            yield write.changes

    def aborted(self, start: int) -> Iterator[Aborted]:
        """The aborted transactions whose markers are at `start` or later, in the order of the markers."""
        for changes in self.changes():
            for transaction in changes.aborted:
                if transaction.last_offset >= start:
                    yield transaction
