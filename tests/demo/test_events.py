"""Every event can be read back from its line; anything else is refused, and the line shown."""

import pytest

from kshim.demo.events import KINDS, from_line, to_line
from tests.demo.history import RUN


@pytest.mark.parametrize("event", RUN, ids=lambda event: f"{type(event).__name__}-{event.at_ms}")
def test_round_trip(event):
    assert from_line(to_line(event)) == event


def test_a_line_is_one_line():
    assert all("\n" not in to_line(event) for event in RUN)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Traceback (most recent call last):",
        "7",
        "[]",
        "{}",
        '{"event": "Nothing", "name": "a", "at_ms": 1}',
        '{"event": "Joining", "name": "a"}',
        '{"event": "Joining", "name": "a", "at_ms": 1, "more": 2}',
    ],
)
def test_anything_else_is_refused(line):
    with pytest.raises(ValueError, match="not an event"):
        from_line(line)


def test_all_kinds_have_their_own_name():
    assert {kind.__name__ for kind in KINDS.values()} == set(KINDS)
