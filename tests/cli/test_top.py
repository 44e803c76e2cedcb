"""The tables of `kshim groups` and `kshim top`."""

from __future__ import annotations

from collections import deque
from io import StringIO
from typing import Any

from rich.console import Console

from kshim.cli.overview import row
from kshim.cli.top import MOST_GROUPS, _rates, _screen

NOW_MS = 1_800_000_000_000


def group(**fields: Any) -> dict[str, Any]:
    known = {
        "group_id": "readers",
        "state": "Stable",
        "members": 2,
        "lag": 1_500,
        "committed": 100,
        "because": "",
        "began_ms": None,
        "waits_for": [],
        "last": {"cause": "a member left", "ended_ms": NOW_MS - 90_000},
        "scores": {"rebalances": 3, "rebalancing": 0.01, "slowest": None, "slowest_ms": 0, "zombies": {}},
    }
    return known | fields


def test_a_calm_group() -> None:
    assert row(group(), NOW_MS) == (
        *("readers", "Stable", "2", "1,500", "3"),
        *("1 min ago: a member left", ""),
    )


def test_a_group_without_offsets_and_rebalances() -> None:
    assert row(group(lag=None, last=None), NOW_MS)[3:6] == ("-", "3", "-")


def test_what_is_worth_a_look() -> None:
    scores = {
        "rebalances": 40,
        "rebalancing": 0.42,
        "slowest": "a at 10.0.0.1",
        "slowest_ms": 4_000,
        "zombies": {"b at 10.0.0.2": 7},
    }
    it = group(because="a member joined: c", began_ms=NOW_MS - 2_500, waits_for=["a-1"], scores=scores)
    assert row(it, NOW_MS)[-1] == (
        "rebalances for 2.500 s, waits for a-1; flaps: it rebalanced 42% of the last 10 min; "
        "slowest: a at 10.0.0.1, 4.000 s in all; b at 10.0.0.2 died 7 times"
    )


def test_records_a_second() -> None:
    before = {"groups": [group(committed=100), group(group_id="reset", committed=50)]}
    known = {"groups": [group(committed=350), group(group_id="reset", committed=0), group(group_id="new")]}
    assert _rates(known, before, 2.0) == {"readers": 125.0, "reset": 0.0}
    assert _rates(known, before, 0.0) == {}


def test_the_screen() -> None:
    known = {"now_ms": NOW_MS, "groups": [group(), group(group_id="behind", lag=9_000)]}
    console = Console(record=True, width=160, file=StringIO())
    console.print(_screen(known, {"readers": 125.0}, deque([{"at_ms": NOW_MS, "text": "it happened"}])))
    lines = console.export_text().splitlines()
    assert lines[0] == "2 groups, 4 members, 10,500 records behind"
    shown = [line for line in lines if "Stable" in line]
    assert ["behind" in shown[0], "readers" in shown[1], "125" in shown[1]] == [True, True, True]
    assert lines[-1].endswith("it happened")


def test_of_many_groups_the_screen_shows_those_that_are_behind_most() -> None:
    groups = [group(group_id=f"g{lag}", lag=lag) for lag in range(MOST_GROUPS + 1_500)]
    console = Console(record=True, width=160, file=StringIO())
    console.print(_screen({"now_ms": NOW_MS, "groups": groups}, {}, deque()))
    text = console.export_text()
    assert text.count("Stable") == MOST_GROUPS
    assert f"g{MOST_GROUPS + 1_499} " in text
    assert "and 1,500 more groups, which are less behind" in text
