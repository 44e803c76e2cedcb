"""Cuts what a client sends: small requests whole, a large Produce in parts, as they come.

A Produce of LARGE_BYTES or more is given as its `Beginning`, as soon as its topic can be read. Its rest is
not collected: it goes on to the broker while more is still on its way, so it takes no more memory than was
received at once. A Produce to several topics is collected, as the last of them may come behind megabytes.
"""

from __future__ import annotations

from collections.abc import Callable

from kshim.network.frames import Beginning, Frames
from kshim.upstream import peek
from schemas.api_key import ApiKey

LARGE_BYTES = 64 * 1024
_SIZE_BYTES = 4


class Requests(Frames):
    """What one client sends. While `left_bytes` are to come, they are given by `next_part`."""

    __slots__ = ("_may_begin", "unfinished_bytes")

    def __init__(self, max_bytes: int, may_begin: Callable[[bytes], bool]) -> None:
        """may_begin: whether a Produce may be given before it is whole, by its topic's name or id."""
        super().__init__(max_bytes)
        self._may_begin = may_begin
        self.unfinished_bytes = 0
        """How much `next_part` has yet to give of a request that was begun."""

    @property
    def left_bytes(self) -> int:
        """As much, if nothing of it has been received; else 0."""
        return 0 if self._chunks else self.unfinished_bytes

    def next_frame(self) -> bytes | bytearray | None:
        """As `Frames` does, or a Beginning; None, too, while its rest is to come."""
        return None if self.unfinished_bytes else super().next_frame()

    def next_part(self) -> memoryview | None:
        """More of the request that was begun; None if there is none, or nothing of it has come."""
        if not self.unfinished_bytes or not self._chunks:
            return None
        part = self._take(self.unfinished_bytes)
        self.unfinished_bytes -= len(part)
        return part

    def passed(self, passed_bytes: int) -> None:
        """So many of `left_bytes` have gone on without having been here."""
        self.unfinished_bytes -= passed_bytes

    def _collect(self) -> bytes | bytearray | None:
        begun = self._begun_in_chunk()
        if begun is None:
            whole = super()._collect()
            if whole is not None or self._cut is None:
                return whole
            begun = self._begun(self._size, memoryview(self._cut)[: self._received])
            if begun is not None:
                self._cut = None
        return begun

    def _begun_in_chunk(self) -> Beginning | None:
        """The usual case, without a copy to collect it: the first chunk ends with the first bytes."""
        chunk, at = self._chunks[0], self._at
        if self._cut is not None or self._start or len(chunk) < at + _SIZE_BYTES:
            return None
        begun = self._begun(self._checked_size(chunk, at), memoryview(chunk)[at + _SIZE_BYTES :])
        if begun is not None:
            self._read_to(len(chunk))
        return begun

    def _begun(self, size: int, data: memoryview) -> Beginning | None:
        """A request of which `data` has come, if its rest need not be awaited."""
        if size < LARGE_BYTES or len(data) < peek.HEAD_BYTES:
            return None
        api_key, api_version, _ = peek.head(data)
        if api_key != ApiKey.PRODUCE:
            return None
        head = peek.produce_head(data, api_version)
        if head is None or head.topics > 1 or not self._may_begin(head.topic):
            return None
        self.unfinished_bytes = size - len(data)
        return Beginning(data, size)
