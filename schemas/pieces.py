"""A long message as a sequence of pieces, which are not joined."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from typing import Final

LARGE_BYTES: Final = 256 * 1024
"""The size from which a piece is sent as it is, because that is cheaper than to copy it."""
BLOCK_BYTES: Final = 1024 * 1024
"""The size at which a block of small pieces is complete."""

Piece = bytes | memoryview


class Pieces:
    """The bytes of a message in pieces, so that its records need not be copied to join the rest."""

    __slots__ = ("_pieces", "_size")

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._size = sum(map(len, pieces))

    def __len__(self) -> int:
        """The number of bytes."""
        return self._size

    def __iter__(self) -> Iterator[Piece]:
        return iter(self._pieces)

    def __bytes__(self) -> bytes:
        return b"".join(self._pieces)


def in_blocks(pieces: Pieces) -> Pieces:
    """Join the small pieces of a message to blocks. Large pieces stay as they are, uncopied."""
    found: list[Piece] = []
    small: list[Piece] = []
    small_bytes = 0
    for piece in pieces:
        if small and (len(piece) >= LARGE_BYTES or small_bytes >= BLOCK_BYTES):
            found.append(block(small))
            small, small_bytes = [], 0
        if len(piece) >= LARGE_BYTES:
            found.append(piece)
        else:
            small.append(piece)
            small_bytes += len(piece)
    if small:
        found.append(block(small))
    return Pieces(found)


def block(pieces: Sequence[Piece]) -> Piece:
    """Join the pieces. A large block is mapped memory, which goes back to the system as soon as it is freed.

    In the heap it would keep the freed memory around it from going back.
    """
    size = sum(map(len, pieces))
    if size < LARGE_BYTES:
        return b"".join(pieces)
    found = mmap.mmap(-1, size)
    for piece in pieces:
        found.write(piece)
    return memoryview(found)
