"""Cuts what a client sends into requests: small ones whole, a large Produce in parts, as they come.

A Produce of LARGE_BYTES or more is returned as its `Beginning`, as soon as its topic can be read. Its rest is
not collected: it goes on to the broker while more arrives, so it takes no more memory than was received at
once. A Produce to several topics is collected: the name of its last topic may come after megabytes.
"""

from __future__ import annotations

from collections.abc import Callable

from kshim.network.frames import Beginning, Frames
from kshim.upstream import peek
from schemas.api_key import ApiKey

LARGE_BYTES = 64 * 1024
_SIZE_BYTES = 4


class Requests(Frames):
    """The requests of one client. While `left_bytes` is not 0, `next_part` returns them."""

    __slots__ = ("_may_begin", "unfinished_bytes")

    def __init__(self, max_bytes: int, may_begin: Callable[[bytes], bool]) -> None:
        """may_begin: True if a Produce to this topic (name or id) may be passed on before it is whole."""
        super().__init__(max_bytes)
        self._may_begin = may_begin
        self.unfinished_bytes = 0
        """Bytes of a request in parts that `next_part` has not returned yet."""

    @property
    def left_bytes(self) -> int:
        """Bytes of a request in parts that have not been received; 0 while `next_part` has some to return."""
        return 0 if self._chunks else self.unfinished_bytes

    def next_frame(self) -> bytes | bytearray | None:
        """Like `Frames.next_frame`, but may return a Beginning; None also while its rest has to come."""
        return None if self.unfinished_bytes else super().next_frame()

    def next_part(self) -> memoryview | None:
        """Return more of the request that was begun; None if no request is, or nothing of it has been
        received.
        """
        if not self.unfinished_bytes or not self._chunks:
            return None
        part = self._take(self.unfinished_bytes)
        self.unfinished_bytes -= len(part)
        return part

    def passed(self, passed_bytes: int) -> None:
        """Note that so many of `left_bytes` went from socket to socket, past this object."""
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
        """Begin with the first chunk alone, without a copy; usually it has all the first bytes."""
        chunk, at = self._chunks[0], self._at
        if self._cut is not None or self._start or len(chunk) < at + _SIZE_BYTES:
            return None
        begun = self._begun(self._checked_size(chunk, at), memoryview(chunk)[at + _SIZE_BYTES :])
        if begun is not None:
            self._read_to(len(chunk))
        return begun

    def _begun(self, size: int, data: memoryview) -> Beginning | None:
        """Return a Beginning of a request whose first bytes are `data`; None if the request has to be
        collected.
        """
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
