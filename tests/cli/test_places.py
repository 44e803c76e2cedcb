"""Places in a topic, as users write them."""

from __future__ import annotations

import time

import click
import pytest

from kshim.cli.places import Bounds, Place, _at_offset, place
from kshim.client.faults import ClientError

NOON_MS = 1795780800000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start", Place("start")),
        ("end", Place("end")),
        ("0", Place("offset", 0)),
        ("9223372036854775807", Place("offset", 2**63 - 1)),
        ("-10", Place("last", 10)),
        ("2026-11-27T12:00", Place("time", NOON_MS)),
        ("2026-11-27T12:00:00.5+01:00", Place("time", NOON_MS - 3_600_000 + 500)),
        ("2026-11-27", Place("time", NOON_MS - 12 * 3_600_000)),
    ],
)
def test_what_users_write(text: str, expected: Place) -> None:
    assert place(text) == expected


def test_a_duration_is_so_long_ago() -> None:
    found = place("1h30m")
    assert found.kind == "time"
    assert found.value == pytest.approx(time.time() * 1000 - 5_400_000, abs=5_000)


@pytest.mark.parametrize("text", ["", "beginning", "9223372036854775808", "1.5", "--1", "12:00"])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(click.UsageError, match="is no place in a topic; expected start, end, an offset"):
        place(text)


def test_an_offset_counts_where_there_is_one() -> None:
    bounds = Bounds({0: 0, 1: 5, 2: 0}, {0: 10, 1: 20, 2: 3})
    assert _at_offset("orders", bounds, 4) == {0: 4, 1: 5, 2: 3}


def test_an_offset_that_no_partition_has() -> None:
    bounds = Bounds(dict.fromkeys(range(7), 5), dict.fromkeys(range(7), 20))
    with pytest.raises(ClientError) as wrong:
        _at_offset("orders", bounds, 21)
    shown = ", ".join(f"orders-{each} has 5 to 20" for each in range(5))
    assert str(wrong.value) == f"no offset 21: {shown}, and there are 2 more"
