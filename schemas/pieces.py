"""A long message, written but not joined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


class Pieces:
    """The bytes of a message in pieces, so that its records need not be copied to stand beside the rest."""

    __slots__ = ("_pieces", "_size")

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        self._size = sum(map(len, pieces))

    def __len__(self) -> int:
        """How many bytes it has."""
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)

    def __bytes__(self) -> bytes:
        return b"".join(self._pieces)
