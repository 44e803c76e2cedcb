"""A rebalance drawn in characters: one row for each member, from the rebalance's beginning to its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kshim.recorder.one_line import on_one_line
from kshim.recorder.story import seconds

if TYPE_CHECKING:
    from kshim.recorder.shown import ShownPart, ShownRebalance


WIDTH = 60
MOST_ROWS = 20
MOST_NAME_CHARACTERS = 100
KNOWS_NOTHING, JOINS, WAITS, SYNCS, HAS, GONE = "·", "-", "▒", "░", "█", "x"
LEGEND = (
    f"{KNOWS_NOTHING} has not heard of it   {JOINS} has to join   {WAITS} waits for the others to join   "
    f"{SYNCS} waits for its assignment   {HAS} has it   {GONE} is gone"
)
CONSUMERS_LEGEND = (
    f"{KNOWS_NOTHING} has not heard of it   {JOINS} has to give up partitions, or waits for some   "
    f"{WAITS} has given them up   {HAS} has its assignment   {GONE} is gone"
)


def timeline(rebalance: ShownRebalance) -> Iterator[str]:
    """The lines of the drawing; none if the rebalance took no time or has no members."""
    began_ms, members = rebalance["began_ms"], rebalance["members"]
    times = [each["assigned_ms"] or each["gone_ms"] or 0 for each in members]
    took_ms = max([rebalance["ended_ms"], *times]) - began_ms
    if took_ms <= 0 or not members:
        return
    names = [on_one_line(each["name"], MOST_NAME_CHARACTERS) for each in members[:MOST_ROWS]]
    width = max(map(len, names))
    end = seconds(took_ms)
    yield ""
    yield f"{'':{width}}  0 s{end:>{WIDTH - 3}}"
    for name, each in zip(names, members, strict=False):
        cells = [_cell(rebalance, each, began_ms + took_ms * (at + 0.5) / WIDTH) for at in range(WIDTH)]
        yield f"{name:{width}}  {''.join(cells)}"
    if len(members) > MOST_ROWS:
        yield f"{'':{width}}  and {len(members) - MOST_ROWS} more members (--json shows all)"
    yield f"{'':{width}}  {CONSUMERS_LEGEND if rebalance.get('is_of_consumers') else LEGEND}"


def _cell(rebalance: ShownRebalance, member: ShownPart, at_ms: float) -> str:
    """The character that shows what a member was doing at one moment."""
    notified_ms = member["notified_ms"] or member["joined_ms"]
    for since_ms, shown in (
        (member["gone_ms"], GONE),
        (member["assigned_ms"], HAS),
        (rebalance["joined_ms"] if member["joined_ms"] else None, SYNCS),
        (member["joined_ms"], WAITS),
        (notified_ms, JOINS),
    ):
        if since_ms is not None and since_ms <= at_ms:
            return shown
    return KNOWS_NOTHING
