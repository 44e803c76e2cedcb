"""Rows of groups that HTTP lists: how far each is behind, its last rebalance, and what deserves a look."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial

from kshim.control.long import in_order
from kshim.control.others import Silent, hear, merged
from kshim.control.overview import LastRebalance
from kshim.control.rows import GroupRow
from kshim.control.rows import row as row_of
from kshim.http.answers import Asked
from kshim.http.everywhere import HERE, is_here
from kshim.http.facts import Facts
from kshim.turns.slices import Slices


class ListedGroup(GroupRow):
    """The row of a group, with its last rebalance."""

    last: LastRebalance | None
    remarks: Sequence[str]
    """Remarks on a group: it flaps, a member is slow, or dies again and again."""


async def row(facts: Facts, slices: Slices, group_id: str) -> ListedGroup | None:
    """The row of one group; None if the group is gone."""
    found = await row_of(facts, slices, group_id)
    if found is None:
        return None
    last = facts.recorder.last(group_id)
    if last is None:
        return {**found, "last": None, "remarks": ()}
    now_ms = int(facts.wall_clock.seconds() * 1000)
    said = await facts.remarks.of(facts.recorder, facts.aside, slices, group_id, now_ms)
    return {**found, "last": {"cause": last.trigger.value, "ended_ms": last.ended_ms}, "remarks": said}


async def rows(facts: Facts, slices: Slices) -> AsyncIterator[ListedGroup]:
    """One row for each group, in the order of their ids."""
    for group_id in await in_order(slices, facts.groups.group_ids()):
        found = await row(facts, slices, group_id)
        if found is not None:
            yield found


async def rows_of_all(facts: Facts, asked: Asked) -> tuple[AsyncIterator[ListedGroup], Sequence[Silent]]:
    """The rows of the groups of all processes that share them, and the processes that do not answer."""
    ours, others = rows(facts, asked.slices), facts.others
    if others is None or is_here(asked):
        return ours, ()
    heard = await hear(others, partial(others.field, target=f"/groups?{HERE}=true", name="groups"))
    return merged(asked.slices, ours, heard.rows), heard.silent
