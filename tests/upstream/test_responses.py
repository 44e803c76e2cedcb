"""Responses cut from what was received: the same bytes, however they come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.upstream.responses import LARGE_BYTES, BadResponse, Part, Responses
from tests.network.frames import frame

small = st.binary(max_size=40)
large = st.integers(LARGE_BYTES, LARGE_BYTES + 50).map(lambda size: b"x" * size)


@given(st.lists(small | large, max_size=6), st.lists(st.integers(1, LARGE_BYTES), max_size=40))
def test_all_come_out_as_they_went_in(payloads: list[bytes], cuts: list[int]) -> None:
    responses, data = Responses(1 << 20), b"".join(map(frame, payloads))
    found: list[bytes] = []
    parts = b""
    while data:
        cut = cuts.pop() if cuts else len(data)
        responses.receive(data[:cut])
        data = data[cut:]
        while (taken := responses.take()) is not None:
            if isinstance(taken, bytes):
                assert not parts
                found.append(taken)
                continue
            assert taken.is_first == (not parts)
            parts += taken.data
            assert taken.is_last == (len(parts) == taken.size + 4)
            if taken.is_last:
                found.append(parts[4:])
                parts = b""
    assert found == payloads
    assert responses.held_bytes == 0


def test_a_large_one_is_announced_before_it_is_taken() -> None:
    responses = Responses(1 << 20)
    responses.receive(frame(b"small") + frame(b"x" * LARGE_BYTES)[:100])
    assert not responses.is_next_large()
    assert responses.take() == b"small"
    assert responses.is_next_large()
    assert isinstance(responses.take(), Part)
    assert not responses.is_next_large()
    assert responses.take() is None


def test_the_parts_of_a_large_one_are_not_kept() -> None:
    responses = Responses(1 << 30)
    responses.receive(frame(b"")[:0] + (1 << 29).to_bytes(4))
    responses.take()
    for _ in range(10):
        responses.receive(b"x" * 1000)
        part = responses.take()
        assert isinstance(part, Part)
        assert len(part.data) == 1000
        assert responses.held_bytes == 0


@pytest.mark.parametrize("size", [-1, 1 << 20])
def test_a_wrong_size_is_refused(size: int) -> None:
    responses = Responses((1 << 20) - 1)
    responses.receive(size.to_bytes(4, signed=True))
    with pytest.raises(BadResponse, match="it begins with b"):
        responses.take()
