"""Rebalances as JSON values, for the command line, HTTP and the topic of rebalances.

All times are in ms since 1970, all durations in ms. The time of something that did not happen is null.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict

from kshim.coordination.groups.classic_group import CONSUMER
from kshim.coordination.groups.offered import split_names
from kshim.coordination.groups.rebalance_record import NEVER_MS, Part, Rebalance, Who
from kshim.recorder.advice import advice
from kshim.recorder.ownership import Effect, Ownership, Partition
from kshim.recorder.story import names_of, story
from schemas.consumer_protocol import decode_assignment, partitions_of
from schemas.message import MalformedMessage

VERSION = 1
"""The version of the JSON format. It rises when a field changes its meaning, not when fields are added."""

MOST_INCIDENTS = 10
"""Events of a group, other than rebalances, that the page and the command line show: the last ones."""

Assignment = Mapping[str, Sequence[int]] | str
"""The partitions of an assignment, by topic; hexadecimal digits if only clients can read its bytes."""


class ShownMember(TypedDict):
    """The ids and the host of a member."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None


class ShownPart(ShownMember):
    """The part of one member in a rebalance."""

    name: str
    offers: Sequence[str]
    notified_ms: int | None
    joined_ms: int | None
    synced_ms: int | None
    assigned_ms: int | None
    gone: str | None
    gone_ms: int | None
    heard_ms: int | None
    contact: str | None
    """The state of its connection when it was gone: "open", "closed" (by the client), "lost" (its host does
    not answer), "ended" (by the server); null if that is not known.
    """
    paused_ms: int | None
    before: Assignment
    after: Assignment
    before_count: NotRequired[int]
    """The number of partitions, where `before` is cut."""
    after_count: NotRequired[int]


ShownMove = TypedDict(
    "ShownMove",
    {"topic": str, "partition": int, "from": str | None, "to": str, "unowned_ms": int | None},
)


class ShownDeparture(TypedDict):
    """How a member ceased to be one."""

    gone: str
    gone_ms: int


class ShownRebalance(TypedDict):
    """One rebalance and its effect."""

    version: int
    group: str
    generation: int
    """The group epoch, if `is_of_consumers`."""
    is_of_consumers: NotRequired[bool]
    """True for a group of the consumer protocol; the field is missing for others."""
    cause: str
    cause_key: str
    member: ShownMember | None
    members_at_cause: Sequence[str]
    reason: str
    detail: str
    began_ms: int
    joined_ms: int | None
    assigned_ms: int | None
    completed_ms: int | None
    ended_ms: int
    protocol_type: str
    protocol: str
    leader: str
    votes: Mapping[str, int]
    members: Sequence[ShownPart]
    more_members: NotRequired[int]
    """The number of members that are left out, where `members` is cut."""
    moved: Sequence[ShownMove]
    without_owner: Mapping[str, Sequence[int]]
    came_back: ShownDeparture | None
    """How the same program ceased to be a member before, if one that joined set the rebalance off."""
    story: Sequence[str]
    advice: str
    """What to change."""


def shown_in_turn(rebalances: Iterable[Rebalance]) -> Iterator[ShownRebalance]:
    """Yield the rebalances of one group as JSON values. rebalances: all that are kept, the oldest first."""
    ownership = Ownership()
    for rebalance in rebalances:
        yield shown(rebalance, ownership.take(rebalance))


def shown(rebalance: Rebalance, effect: Effect) -> ShownRebalance:
    """One rebalance and its effect as a JSON value."""
    it, names = rebalance, names_of(rebalance, effect)
    value: ShownRebalance = {
        "version": VERSION,
        "group": it.group_id,
        "generation": it.generation,
        "cause": it.trigger.value,
        "cause_key": it.trigger.name,
        "member": shown_member(it.members[0]) if it.members else None,
        "members_at_cause": [each.member_id for each in it.members],
        "reason": it.reason,
        "detail": it.detail,
        "began_ms": it.began_ms,
        "joined_ms": _time(it.joined_ms),
        "assigned_ms": _time(it.assigned_ms),
        "completed_ms": it.ended_ms if it.is_complete else None,
        "ended_ms": it.ended_ms,
        "protocol_type": it.protocol_type,
        "protocol": it.protocol,
        "leader": it.leader,
        "votes": dict(it.votes),
        "members": [
            _part(it, part, names[member_id], effect.paused_ms.get(member_id))
            for member_id, part in it.parts.items()
        ],
        "moved": [
            {
                "topic": moved.partition[0],
                "partition": moved.partition[1],
                "from": None if moved.before is None else moved.before.member_id,
                "to": moved.after.member_id,
                "unowned_ms": moved.unowned_ms,
            }
            for moved in effect.moved
        ],
        "without_owner": _by_topic(effect.without_owner),
        "came_back": _came_back(it),
        "story": story(it, effect),
        "advice": advice(it),
    }
    if it.is_of_consumers:
        value["is_of_consumers"] = True
    return value


def shown_member(who: Who) -> ShownMember:
    """The ids and the host of a member."""
    return {
        "member_id": who.member_id,
        "client_id": who.client_id,
        "host": who.client_host.removeprefix("/"),
        "instance_id": who.group_instance_id,
    }


def shown_assignment(protocol_type: str, assignment: bytes) -> Assignment:
    if not assignment:
        return {}
    try:
        if protocol_type == CONSUMER:
            return _by_topic(sorted(partitions_of(decode_assignment(assignment).assigned_partitions)))
    except MalformedMessage:
        pass
    return assignment.hex()


def _part(rebalance: Rebalance, part: Part, name: str, paused_ms: int | None) -> ShownPart:
    member = shown_member(part.who)
    return {
        "member_id": member["member_id"],
        "client_id": member["client_id"],
        "host": member["host"],
        "instance_id": member["instance_id"],
        "name": name,
        "offers": [name.decode() for name in split_names(part.offers)],
        "notified_ms": _time(part.notified_ms),
        "joined_ms": _time(part.joined_ms),
        "synced_ms": _time(part.synced_ms),
        "assigned_ms": _time(part.assigned_ms),
        "gone": part.gone,
        "gone_ms": _time(part.gone_ms),
        "heard_ms": _time(part.heard_ms),
        "contact": None if part.departure is None else part.departure.contact,
        "paused_ms": paused_ms,
        "before": shown_assignment(rebalance.protocol_type, part.before),
        "after": shown_assignment(rebalance.protocol_type, part.after),
    }


def _came_back(rebalance: Rebalance) -> ShownDeparture | None:
    before = rebalance.came_back
    if before is None or before.gone is None:
        return None
    return {"gone": before.gone, "gone_ms": before.gone_ms}


def _by_topic(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def _time(ms: int) -> int | None:
    return None if ms == NEVER_MS else ms
