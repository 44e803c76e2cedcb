"""Framing without IO: received chunks in, whole frames out.

A frame is a 4-byte signed size and that many bytes. The rest of a large frame is received straight into the
frame's memory (`room`). Every byte is copied a bounded number of times, so the cost is linear in what was
received however it was cut up, and memory grows with what was received, never with what was announced.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from struct import Struct

from schemas.pieces import Pieces

_SIZE = Struct(">i")
_size_at = _SIZE.unpack_from
_SIZE_BYTES = 4
_START_BYTES = 32
_LIMIT = "socket.request.max.bytes"
_GROWTH = 3
"""An incomplete frame takes at most so many times the memory of its received part."""
_ROOM_BYTES = 32 * 1024
"""For fewer bytes, receiving straight into the frame is not worth a system call."""


class FrameError(ValueError):
    """The peer sent a size that no frame may have, so nothing after it can be read. str() says why."""

    def __init__(self, why: str, start: bytes) -> None:
        super().__init__(why)
        self.start = start
        """The size and up to 28 bytes after it, as far as they were received."""


class Beginning(bytes):
    """The first bytes of a frame that goes to an upstream. Its rest follows in parts."""

    size: int
    """Bytes of the whole frame."""

    def __new__(cls, data: bytes | memoryview, size: int) -> Beginning:
        made = super().__new__(cls, data)
        made.size = size
        return made


class Sent(Pieces):
    """Stands for a reply whose bytes have already gone to the client."""

    __slots__ = ()

    def __init__(self, size: int) -> None:
        self._pieces, self._size = (), size


Begins = Callable[[int, memoryview], bool]
"""Called with the size and the first bytes of an incomplete frame. True if it may go on in parts."""


class Frames:
    """The frames of one peer.

    `receive` takes a chunk, `next_frame` returns the frames one by one, so that the caller may stop between
    two. Instead of a large frame it may return the frame's Beginning. The rest is not collected: `next_part`
    returns it as it comes, so it takes no more memory than was received at once.
    """

    __slots__ = (
        *("_at", "_begins", "_chunks", "_cut", "_limit", "_max_bytes", "_received", "_size", "_start"),
        "unfinished_bytes",
    )

    def __init__(self, max_bytes: int, begins: Begins | None = None) -> None:
        """max_bytes: limit of a frame, without its size. begins: None if all frames have to be whole."""
        self.allow(max_bytes)
        self._begins = begins
        self.unfinished_bytes = 0
        """Bytes of a frame in parts that `next_part` has not returned yet."""
        self._chunks: deque[bytes] = deque()
        self._at = 0  # how far the first chunk has been read
        self._start = b""  # the part that was received of a cut size
        self._cut: bytearray | None = None  # the cut frame, with memory for more of it
        self._size = 0  # the cut frame's size
        self._received = 0  # how much of the cut frame was received

    @property
    def left_bytes(self) -> int:
        """Bytes of a frame in parts that have not been received; 0 while `next_part` has some to return."""
        return 0 if self._chunks else self.unfinished_bytes

    @property
    def cut_bytes(self) -> int:
        """How many bytes were received of an incomplete frame, including its size."""
        return len(self._start) if self._cut is None else _SIZE_BYTES + self._received

    def allow(self, max_bytes: int, limit: str = _LIMIT) -> None:
        """Accept frames up to this size from now on. limit: the name of the property that sets it."""
        self._max_bytes, self._limit = max_bytes, limit

    def receive(self, chunk: bytes) -> None:
        """Add received bytes; `chunk` is kept until it has been read."""
        if chunk:
            self._chunks.append(chunk)

    def room(self, arrived: Callable[[], int]) -> memoryview | None:
        """Return memory for the next bytes of a large frame; None if `receive` should be called instead.

        The caller then calls `filled`. arrived: returns how many bytes the system has received already; there
        is room for as many.
        """
        if self._cut is None or self._chunks or self._size - self._received < _ROOM_BYTES:
            return None
        is_full = self._received == len(self._cut)
        return memoryview(self._with_room(max(1, arrived()) if is_full else 0))[self._received :]

    def filled(self, received: int) -> None:
        """Note that so many bytes were received into `room()`."""
        self._received += received

    def next_frame(self) -> bytes | bytearray | None:
        """Return the next frame, whole or its Beginning, without its size; None if more has to be received.
        The caller owns a bytearray.

        Raises FrameError for a size that is negative or above max_bytes; nothing can be read after it.
        """
        if self.unfinished_bytes:
            return None
        chunks = self._chunks
        while chunks:
            chunk, at = chunks[0], self._at
            body, left = at + _SIZE_BYTES, len(chunk)
            if body <= left and self._cut is None and not self._start:
                size = _size_at(chunk, at)[0]
                end = body + (size if 0 <= size <= self._max_bytes else self._checked_size(chunk, at))
                if end <= left:  # the common case: the whole frame is in one chunk
                    if end == left:
                        chunks.popleft()
                        self._at = 0
                    else:
                        self._at = end
                    return chunk[body:end]
            frame = self._collect()
            if frame is not None:
                return frame
        return self._whole()

    def next_part(self) -> memoryview | None:
        """Return more of the frame that was begun; None if there is none, or nothing of it has come."""
        if not self.unfinished_bytes or not self._chunks:
            return None
        part = self._take(self.unfinished_bytes)
        self.unfinished_bytes -= len(part)
        return part

    def passed(self, passed_bytes: int) -> None:
        """Note that so many of `left_bytes` went from socket to socket, past this object."""
        self.unfinished_bytes -= passed_bytes

    def _collect(self) -> bytes | bytearray | None:
        """Move the first chunk's part of a cut frame to the frame. Return the frame once it is complete, or
        its Beginning once it may go on in parts.
        """
        if self._begins is not None and (begun := self._begun_in_chunk(self._begins)) is not None:
            return begun
        if self._cut is None:
            self._start += self._take(_SIZE_BYTES - len(self._start))
            if len(self._start) < _SIZE_BYTES:
                return None
            self._size, self._received = self._checked_size(self._start, 0), 0
            self._start, self._cut = b"", bytearray()
        if self._chunks:
            part = self._take(self._size - self._received)
            end = self._received + len(part)
            self._with_room(len(part))[self._received : end] = part
            self._received = end
        if self._begins is not None and self._received < self._size:
            start = memoryview(self._cut)[: self._received]
            if self._begins(self._size, start):
                self._cut = None
                self.unfinished_bytes = self._size - self._received
                return Beginning(start, self._size)
        return self._whole()

    def _begun_in_chunk(self, begins: Begins) -> Beginning | None:
        """Begin with the first chunk alone, without a copy; usually it has all the first bytes."""
        chunk, at = self._chunks[0], self._at
        if self._cut is not None or self._start or len(chunk) < at + _SIZE_BYTES:
            return None
        size, start = self._checked_size(chunk, at), memoryview(chunk)[at + _SIZE_BYTES :]
        if not begins(size, start):
            return None
        self._read_to(len(chunk))
        self.unfinished_bytes = size - len(start)
        return Beginning(start, size)

    def _with_room(self, more: int) -> bytearray:
        """Return the cut frame, with memory for `more` bytes."""
        assert self._cut is not None
        needed = self._received + more
        if needed > len(self._cut):
            grown = bytearray(min(self._size, _GROWTH * needed))
            grown[: self._received] = memoryview(self._cut)[: self._received]
            self._cut = grown
        return self._cut

    def _whole(self) -> bytearray | None:
        """Return the cut frame, if it is complete now."""
        if self._cut is None or self._received < self._size:
            return None
        whole, self._cut = self._cut, None
        return whole

    def _take(self, most: int) -> memoryview:
        """Return the next bytes of the first chunk, at most `most`."""
        chunk, at = self._chunks[0], self._at
        end = min(at + most, len(chunk))
        self._read_to(end)
        return memoryview(chunk)[at:end]

    def _read_to(self, end: int) -> None:
        if end == len(self._chunks[0]):
            self._chunks.popleft()
            self._at = 0
        else:
            self._at = end

    def _checked_size(self, buffer: bytes, at: int) -> int:
        size: int = _SIZE.unpack_from(buffer, at)[0]
        if 0 <= size <= self._max_bytes:
            return size
        limit = f", above {self._limit}, which is {self._max_bytes}" if size > 0 else ""
        raise FrameError(f"a request of {size} bytes{limit}", bytes(buffer[at : at + _START_BYTES]))


def framed(payload: bytes | Pieces) -> tuple[bytes, ...]:
    """Return the frame that carries `payload`, in pieces, so that a large payload is not copied."""
    size = _SIZE.pack(len(payload))
    return (size, payload) if isinstance(payload, bytes) else (size, *payload)
