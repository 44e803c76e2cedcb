"""A long message, written but not joined."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from typing import Final

LARGE_BYTES: Final = 256 * 1024
"""A piece that large is better sent as it is than copied."""
BLOCK_BYTES: Final = 1024 * 1024
"""How much is joined of small pieces."""

Piece = bytes | memoryview


class Pieces:
    """The bytes of a message in pieces, so that its records need not be copied to stand beside the rest."""

    __slots__ = ("_pieces", "_size")

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._size = sum(map(len, pieces))

    def __len__(self) -> int:
        """How many bytes it has."""
        return self._size

    def __iter__(self) -> Iterator[Piece]:
        return iter(self._pieces)

    def __bytes__(self) -> bytes:
        return b"".join(self._pieces)


def in_blocks(pieces: Pieces) -> Pieces:
    """The same bytes, the small pieces joined to blocks. Large ones stay as they are, uncopied."""
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
    """The pieces joined. A large block has memory of its own from the system, which gets it back at once: one
    among others in the heap would keep all that was freed around it.
    """
    size = sum(map(len, pieces))
    if size < LARGE_BYTES:
        return b"".join(pieces)
    found = mmap.mmap(-1, size)
    for piece in pieces:
        found.write(piece)
    return memoryview(found)
