"""Arrays are kept as long as what they were made of is the same."""

from __future__ import annotations

import pytest

from kshim.answering import written
from kshim.answering.written import WrittenArrays


def test_the_same_sources_give_the_same_array() -> None:
    arrays, topic, running = WrittenArrays(), object(), (1, 2)
    first = arrays.array("key", (topic, running), str, range(3))
    assert arrays.array("key", (topic, running), str, range(3)) is first
    assert arrays.array("other", (topic, running), str, range(3)) is not first
    assert arrays.array("key", (topic, tuple(iter(running))), str, range(3)) is not first
    assert arrays.array("key", (object(), running), str, range(4)) == ("0", "1", "2", "3")


def test_the_oldest_arrays_go_when_there_are_too_many_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "MOST_ELEMENTS", 10)
    arrays = WrittenArrays()
    first, second = (arrays.array(key, (), str, range(5)) for key in "ab")
    assert arrays.array("a", (), str, range(5)) is first
    arrays.array("c", (), str, range(1))
    assert arrays.array("b", (), str, range(5)) is second
    assert arrays.array("a", (), str, range(5)) is not first
    assert len(arrays.array("large", (), str, range(11))) == 11
    assert len(arrays.array("b", (), str, range(5))) == 5
