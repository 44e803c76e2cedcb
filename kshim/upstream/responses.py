"""Cuts what an upstream broker sends into responses: small ones whole, large ones in parts, as they come.

A response of LARGE_BYTES or more is not collected: its parts go on to the client while the rest arrives, so
it takes no more memory than was received at once.
"""

from __future__ import annotations

from typing import NamedTuple

LARGE_BYTES = 32 * 1024
_SIZE_BYTES = 4


class Part(NamedTuple):
    """Some bytes of a large response; the first part begins with its size."""

    data: bytes | memoryview
    size: int
    """Bytes of the whole response, without the four bytes of its size."""
    is_first: bool
    is_last: bool


class BadResponse(Exception):
    """The broker's bytes cannot be read as responses."""


class Responses:
    """The responses of one broker."""

    __slots__ = ("_at", "_data", "_left", "_max_bytes", "_size")

    def __init__(self, max_bytes: int) -> None:
        """max_bytes: the largest response."""
        self._max_bytes = max_bytes
        self._data = b""
        self._at = 0
        self._size = 0
        self._left = 0
        """Bytes of a large response that `take` has not returned yet."""

    @property
    def held_bytes(self) -> int:
        """Bytes that were received and not taken yet."""
        return len(self._data) - self._at

    def receive(self, data: bytes) -> None:
        """Add bytes that were received."""
        self._data = self._data[self._at :] + data if self._at < len(self._data) else data
        self._at = 0

    @property
    def left_bytes(self) -> int:
        """Bytes of a large response that have not been received; 0 while `take` has some to return."""
        return 0 if self._data else self._left

    def passed(self, passed_bytes: int) -> Part:
        """Note that so many of `left_bytes` went from socket to socket, and return a part without data for
        them.
        """
        self._left -= passed_bytes
        return Part(b"", self._size, is_first=False, is_last=not self._left)

    def is_next_large(self) -> bool:
        """True if `take` would begin a response in parts."""
        return not self._left and self.held_bytes >= _SIZE_BYTES and self._next_size() >= LARGE_BYTES

    def take(self) -> bytes | Part | None:
        """Return the next whole response without its size, or the next part of a large one; None if more has
        to be received first.

        Raises BadResponse.
        """
        data, at, have = self._data, self._at, len(self._data) - self._at
        if self._left:
            return self._part(min(have, self._left), is_first=False) if have else None
        if have < _SIZE_BYTES:
            return None
        size = self._next_size()
        if not 0 <= size <= self._max_bytes:
            raise BadResponse(f"it begins with {bytes(data[at : at + 32])!r}")
        end = at + _SIZE_BYTES + size
        if size >= LARGE_BYTES:
            self._size, self._left = size, _SIZE_BYTES + size
            return self._part(min(have, self._left), is_first=True)
        if end > len(data):
            return None
        self._at = end
        return data[at + _SIZE_BYTES : end]

    def _next_size(self) -> int:
        return int.from_bytes(self._data[self._at : self._at + _SIZE_BYTES], signed=True)

    def _part(self, length: int, *, is_first: bool) -> Part:
        data, at = self._data, self._at
        whole = at == 0 and length == len(data)
        part = data if whole else memoryview(data)[at : at + length]
        self._left -= length
        if at + length == len(data):
            self._data, self._at = b"", 0
        else:
            self._at = at + length
        return Part(part, self._size, is_first, not self._left)
