"""The JSON of groups: a row of the listing, and one group with its members and offsets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

from kshim.control.rows import ROW_US, facts_of, offsets, row
from kshim.coordination.groups.member import Member
from kshim.coordination.groups.rebalance_record import who
from kshim.coordination.groups.seen import SeenGroup
from kshim.http.answers import Answer, Asked, HttpError, Long, listing, long_answer
from kshim.http.facts import Facts, Json
from kshim.recorder.scores import scores
from kshim.recorder.shown import shown_assignment, shown_in_turn, shown_member
from kshim.requests.slices import Slices

LONG_LISTS = ("members", "moved")
"""Of a rebalance."""
WAITS = ("because", "began_ms", "until_ms", "to_join", "to_join_first", "to_sync")
"""What of `WaitsFor` a group does not tell itself."""
MEMBER_US = 50


async def groups(facts: Facts, asked: Asked) -> Answer:
    """GET /groups"""
    return listing("groups", rows(facts, asked.slices))


async def rows(facts: Facts, slices: Slices) -> AsyncIterator[Json]:
    """A row for each group, by group id."""
    for group_id in sorted(facts.groups.group_ids()):
        found = await row(facts, slices, group_id)
        if found is not None:
            yield found


async def group(facts: Facts, asked: Asked) -> Answer:
    """GET /groups/{group}"""
    group_id = asked.names[0]
    found = facts.groups.see(group_id)
    if found is None:
        raise no_group(group_id)
    told = {
        **facts_of(found),
        "waits_for": waits_for(facts, group_id),
        "scores": scores_of(facts, group_id),
    }
    lists = {"members": members(asked.slices, found), "offsets": offsets(facts, asked.slices, found)}
    return long_answer(Long(told, lists))


def waits_for(facts: Facts, group_id: str) -> Json:
    """Whom a group waits for, until when, and why; empty if the group is gone."""
    found = facts.groups.waits_for(group_id)
    return {} if found is None else {name: value for name, value in found.items() if name in WAITS}


def scores_of(facts: Facts, group_id: str) -> Json:
    """How restless a group is, who is slow, and who dies again and again."""
    return scores(facts.recorder.rebalances(group_id), int(facts.wall_clock.seconds() * 1000))


async def rebalances(facts: Facts, asked: Asked) -> Answer:
    """GET /groups/{group}/rebalances"""
    group_id = asked.names[0]
    recorded = await rebalances_of(facts, group_id)
    if not recorded and facts.groups.see(group_id) is None:
        raise no_group(group_id)
    return listing("rebalances", _rebalances(asked.slices, recorded))


async def rebalances_of(facts: Facts, group_id: str) -> list[Json]:
    """The rebalances of a group that are kept, the oldest first; their stories are written aside."""
    kept = facts.recorder.rebalances(group_id)
    return await facts.aside.run(partial(list[Json], shown_in_turn(kept))) if kept else []


async def _rebalances(slices: Slices, recorded: Sequence[Json]) -> AsyncIterator[Long]:
    for rebalance in recorded:
        lists = {name: _each(slices, rebalance[name]) for name in LONG_LISTS}
        yield Long({name: value for name, value in rebalance.items() if name not in lists}, lists)


async def _each(slices: Slices, items: Sequence[Any]) -> AsyncIterator[Any]:
    for item in items:
        await slices.spend(ROW_US)
        yield item


async def members(slices: Slices, group: SeenGroup) -> AsyncIterator[Json]:
    """The members of a group and what they were assigned."""
    for member in group.members:
        await slices.spend(MEMBER_US)
        yield member_json(group, member)


def no_group(group_id: str) -> HttpError:
    """How a group is refused that is not there."""
    return HttpError(404, f"no group {group_id[:200]!r}; GET /groups lists them all")


def member_json(group: SeenGroup, member: Member) -> Json:
    """One member and what it was assigned."""
    return {
        **shown_member(who(member)),
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "assignment": shown_assignment(group.protocol_type, member.assignment),
    }
