"""The traits of Java that clients can see."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kshim.coordination.java import BLOCK, string_hash


@given(st.text(st.characters(), max_size=20), st.integers(0, 3 * BLOCK))
@example("\ud83d", 0)
def test_the_hash_of_a_string(text: str, times: int) -> None:
    text = (text * times)[: 3 * BLOCK] + text
    utf16 = text.encode("utf-16-be", "surrogatepass")
    units = [int.from_bytes(utf16[at : at + 2]) for at in range(0, len(utf16), 2)]
    assert string_hash(text) == reduce(lambda code, unit: (31 * code + unit) % 2**32, units, 0)


@pytest.mark.parametrize(
    ("text", "code"), [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", 2**31)]
)
def test_what_java_answers(text: str, code: int) -> None:
    assert string_hash(text) == code
