"""Framing without IO: received chunks in, whole frames out.

A frame is a 4-byte signed size and that many bytes. Every received byte is copied at most once, so the cost
is linear in what was received however it was cut up, and memory grows with what was received, never with what
was announced.
"""

from __future__ import annotations

from collections import deque
from struct import Struct

_SIZE = Struct(">i")
_SIZE_BYTES = 4
_START_BYTES = 32


class FrameError(ValueError):
    """The peer sent a size that no frame may have; nothing after it can be read. str() says why."""

    def __init__(self, why: str, start: bytes) -> None:
        super().__init__(why)
        self.start = start
        """The size and up to 28 bytes behind it, as far as they were received."""


class Frames:
    """The frames that one peer sends.

    `receive` takes a chunk, `next_frame` gives the frames one by one, so that the caller may stop between
    two.
    """

    __slots__ = ("_at", "_chunks", "_max_bytes", "partial")

    def __init__(self, max_bytes: int) -> None:
        """max_bytes: the largest frame that is accepted, without its size (socket.request.max.bytes)."""
        self._max_bytes = max_bytes
        self._chunks: deque[bytes] = deque()
        self._at = 0  # how far the first chunk has been read
        self.partial = bytearray()
        """The size, and the bytes so far, of a frame that was cut."""

    def receive(self, chunk: bytes) -> None:
        """Take what was received; `chunk` is kept until it has been read."""
        if chunk:
            self._chunks.append(chunk)

    def next_frame(self) -> bytes | memoryview | None:
        """The next whole frame, without its size; None until more is received.

        Raises FrameError for a size that is negative or above max_bytes; nothing can be read after it.
        """
        while self._chunks:
            chunk, at = self._chunks[0], self._at
            body = at + _SIZE_BYTES
            if not self.partial and body <= len(chunk):
                end = body + self._checked_size(chunk, at)
                if end <= len(chunk):  # the common case: the frame lies whole within one chunk
                    self._read_to(end)
                    return chunk[body:end]
            frame = self._collect()
            if frame is not None:
                return frame
        return None

    def _collect(self) -> memoryview | None:
        """Move the first chunk's part of a cut frame into `partial`; return the frame once complete."""
        partial = self.partial
        if not self._fill(_SIZE_BYTES):
            return None
        if not self._fill(_SIZE_BYTES + self._checked_size(partial, 0)):
            return None
        self.partial = bytearray()
        return memoryview(partial)[_SIZE_BYTES:].toreadonly()

    def _fill(self, length: int) -> bool:
        """Fill `partial` from the first chunk up to `length` bytes; return whether it has them all."""
        partial = self.partial
        missing = length - len(partial)
        if missing > 0 and self._chunks:
            end = min(self._at + missing, len(self._chunks[0]))
            partial += memoryview(self._chunks[0])[self._at : end]
            self._read_to(end)
        return len(partial) >= length

    def _read_to(self, end: int) -> None:
        if end == len(self._chunks[0]):
            self._chunks.popleft()
            self._at = 0
        else:
            self._at = end

    def _checked_size(self, buffer: bytes | bytearray, at: int) -> int:
        size: int = _SIZE.unpack_from(buffer, at)[0]
        if 0 <= size <= self._max_bytes:
            return size
        limit = f", above socket.request.max.bytes, which is {self._max_bytes}" if size > 0 else ""
        raise FrameError(f"a request of {size} bytes{limit}", bytes(buffer[at : at + _START_BYTES]))


def framed(payload: bytes) -> tuple[bytes, bytes]:
    """The frame that carries `payload`, in two pieces, so that a large payload is not copied for its size."""
    return _SIZE.pack(len(payload)), payload
