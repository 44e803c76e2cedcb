"""The JSON of groups: a row of the listing, and one group with its members and offsets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import NotRequired, TypedDict

from kshim.control.long import Long, long_rebalances
from kshim.control.overview import scores_of
from kshim.control.rows import facts_of, offsets
from kshim.coordination.groups.consumer import seen as consumer
from kshim.coordination.groups.rebalance_record import who
from kshim.coordination.groups.seen import SeenGroup, SeenMember
from kshim.http import everywhere, group_rows
from kshim.http.answers import Answer, Asked, HttpError, listing, long_answer
from kshim.http.facts import Facts
from kshim.recorder.scores import Scores
from kshim.recorder.shown import Assignment, ShownMember, shown_assignment, shown_member
from kshim.turns.aside import Aside
from kshim.turns.slices import Slices

WAITS = (
    *("because", "began_ms", "until_ms", "to_join", "to_join_first", "to_sync"),
    *("to_revoke", "revoking", "to_get", "to_hear"),
)
"""The fields of `WaitsFor` that the rest of a group's JSON lacks."""
MEMBER_US = 50
LIGHT_BYTES = 4_000
"""Largest assignment decoded at once. Larger ones are decoded aside, as 1,000 partitions take some ms."""


class ConsumerFacts(TypedDict):
    """What only a member of a consumer group has."""

    epoch: int
    state: str
    """"stable", "unrevoked_partitions" or "unreleased_partitions"."""
    topics: Sequence[str]
    """The topics that it subscribes to by name."""
    regex: str
    assignor: str | None
    """The assignor that it asks for."""
    target: Assignment
    """What it is to have."""


class ShownGroupMember(ShownMember):
    """A member of a group, with its assignment."""

    session_timeout_ms: int
    rebalance_timeout_ms: int
    assignment: Assignment
    consumer: NotRequired[ConsumerFacts]
    """Only a member of a consumer group has this field."""


async def groups(facts: Facts, asked: Asked) -> Answer:
    """GET /groups"""
    rows, silent = await group_rows.rows_of_all(facts, asked)
    several = facts.others is not None and bool(facts.others.all()) and not everywhere.is_here(asked)
    return long_answer(Long({"silent": silent} if several else {}, {"groups": rows}))


async def group(facts: Facts, asked: Asked) -> Answer:
    """GET /groups/{group}"""
    group_id = asked.names[0]
    found = facts.groups.see(group_id)
    if found is None:
        raise no_group(group_id)
    shown = {
        **facts_of(found),
        "waits_for": _waits_for(facts, group_id),
        "scores": await group_scores(facts, group_id),
    }
    lists = {
        "members": members(facts.aside, asked.slices, found),
        "offsets": offsets(facts, asked.slices, found),
    }
    return long_answer(Long(shown, lists))


def _waits_for(facts: Facts, group_id: str) -> dict[str, object]:
    """Return which members a group waits for, until when, and why; empty if the group is gone."""
    found = facts.groups.waits_for(group_id)
    return {} if found is None else {name: value for name, value in found.items() if name in WAITS}


async def group_scores(facts: Facts, group_id: str) -> Scores:
    """Return how restless a group is, which client is slow, and which client dies again and again."""
    now_ms = int(facts.wall_clock.seconds() * 1000)
    return await scores_of(facts.aside, facts.recorder.rebalances(group_id), now_ms)


async def rebalances(facts: Facts, asked: Asked) -> Answer:
    """GET /groups/{group}/rebalances"""
    group_id = asked.names[0]
    kept = facts.recorder.rebalances(group_id)
    if not kept and facts.groups.see(group_id) is None:
        raise no_group(group_id)
    return listing("rebalances", long_rebalances(facts.aside, asked.slices, kept))


async def members(aside: Aside, slices: Slices, group: SeenGroup) -> AsyncIterator[ShownGroupMember]:
    """The members of a group, each with its assignment."""
    for member in group.members:
        await slices.spend(MEMBER_US)
        read = partial(shown_assignment, group.protocol_type)
        assignment = await _decoded(aside, read, member.assignment)
        if isinstance(member, consumer.SeenMember):
            target = await _decoded(aside, read, member.target)
            yield member_json(member, assignment, _consumer_facts(member, target))
        else:
            yield member_json(member, assignment)


async def _decoded(aside: Aside, read: Callable[[bytes], Assignment], assignment: bytes) -> Assignment:
    decode = partial(read, assignment)
    return decode() if len(assignment) <= LIGHT_BYTES else await aside.run(decode)


def no_group(group_id: str) -> HttpError:
    """The 404 for a group that does not exist."""
    return HttpError(404, f"no group {group_id[:200]!r}; GET /groups lists them all")


def member_json(
    member: SeenMember, assignment: Assignment, of_consumer: ConsumerFacts | None = None
) -> ShownGroupMember:
    """One member as JSON. assignment: from `shown_assignment`."""
    names = shown_member(who(member))
    shown: ShownGroupMember = {
        "member_id": names["member_id"],
        "client_id": names["client_id"],
        "host": names["host"],
        "instance_id": names["instance_id"],
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "assignment": assignment,
    }
    if of_consumer is not None:
        shown["consumer"] = of_consumer
    return shown


def _consumer_facts(seen: consumer.SeenMember, target: Assignment) -> ConsumerFacts:
    member = seen.member
    return {
        "epoch": member.epoch,
        "state": member.state.name.lower(),
        "topics": sorted(member.topic_names),
        "regex": member.regex,
        "assignor": member.server_assignor,
        "target": target,
    }
