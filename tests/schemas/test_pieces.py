"""The pieces of a message are its bytes, however they are joined."""

from __future__ import annotations

from schemas.pieces import BLOCK_BYTES, LARGE_BYTES, Pieces, block, in_blocks


def test_small_pieces_are_joined_and_large_ones_stay_as_they_are() -> None:
    large = bytes(LARGE_BYTES)
    pieces = Pieces([b"a", b"b", large, b"c", b"d"])
    found = list(in_blocks(pieces))
    assert found == [b"ab", large, b"cd"]
    assert found[1] is large


def test_many_small_pieces_become_blocks() -> None:
    pieces = Pieces([bytes([number % 256]) * 1000 for number in range(3 * BLOCK_BYTES // 1000)])
    found = in_blocks(pieces)
    assert bytes(found) == bytes(pieces)
    assert len(found) == len(pieces)
    assert len(list(found)) == 3


def test_nothing_is_nothing() -> None:
    assert list(in_blocks(Pieces([]))) == []
    assert bytes(block([])) == b""
