"""Writes a consumer group's record of the rebalance under way: from a new group epoch until all members have
what they are to have. See `groups.recording`; each function notes one event that happens now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from kshim.coordination.groups.classic_group import CONSUMER
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import GOES_AWAY, JOINS, Member, MemberState
from kshim.coordination.groups.consumer.seen import held_by
from kshim.coordination.groups.consumer.states import GroupState
from kshim.coordination.groups.consumer.topics import Topics
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.rebalance_record import (
    MOST_NAMED,
    MOST_REASON,
    NEVER_MS,
    Part,
    Rebalance,
    RebalanceBegan,
    Resumed,
    Who,
)
from kshim.coordination.groups.texts import MOST_CHARACTERS, joined
from kshim.coordination.groups.trigger import Gone, Trigger

_CAUSES: Mapping[Gone, Trigger] = {
    Gone.LEFT: Trigger.MEMBER_LEFT,
    Gone.REMOVED: Trigger.MEMBER_REMOVED,
    Gone.EXPIRED: Trigger.SESSION_EXPIRED,
    Gone.ENDED: Trigger.SESSION_EXPIRED,
    Gone.EVICTED: Trigger.MEMBER_EVICTED,
    Gone.SILENT: Trigger.SYNC_EXPIRED,
    Gone.UNREVOKED: Trigger.REVOCATION_EXPIRED,
}


class Cause(NamedTuple):
    """The cause of a rebalance."""

    trigger: Trigger
    detail: str = ""


class Noted:
    """What one call has changed of the members, and why, until a rebalance begins."""

    __slots__ = ("cause", "detail", "gone", "heard_ms", "put", "removed")

    def __init__(self) -> None:
        self.cause: Cause | None = None
        """The cause, if the members do not show it."""
        self.detail = ""
        """More about the cause, if a new member is it."""
        self.gone = Gone.LEFT
        """How the members that are removed cease to be members."""
        self.heard_ms = NEVER_MS
        """When they were last heard, if their session has expired."""
        self.put: list[tuple[Member | None, Member]] = []
        """Members whose subscriptions were written, as they were before and as they are."""
        self.removed: list[Member] = []

    def clear(self) -> None:
        """Forget what was noted of members."""
        self.put, self.removed = [], []


def begins(draft: Draft, group: ConsumerGroup, noted: Noted, topics: Topics, assignor: str) -> None:
    """A group epoch begins. If a rebalance is under way, it ends incomplete and is reported."""
    gives_way(draft, group)
    (trigger, detail), members = _cause(draft, group, noted)
    record = group.rebalance = Rebalance(
        group.group_id,
        trigger,
        tuple(members)[:MOST_NAMED],
        "",
        detail[:MOST_REASON],
        draft.now_ms,
        generation=group.epoch,
        protocol_type=CONSUMER,
        protocol=assignor,
        is_of_consumers=True,
    )
    draft.report(RebalanceBegan(group.group_id, trigger, record.members))
    for member in noted.removed:
        record.parts[member.member_id] = Part(
            who(member),
            before=held_by(member, topics),
            gone=noted.gone,
            gone_ms=draft.now_ms,
            heard_ms=noted.heard_ms,
        )
    noted.clear()


def moves(
    draft: Draft, group: ConsumerGroup, old: Member | None, new: Member, topics: Topics, *, releases: bool
) -> None:
    """A member takes a step to its target. O(its partitions).

    releases: True if it hears of it by the answer to a heartbeat that has waited for news.
    """
    record = group.rebalance
    if record is None or new.epoch == GOES_AWAY:
        return
    part = record.parts.get(new.member_id)
    is_same = part is None and old is not None and old.assigned == new.assigned and not old.revoking
    if part is None:
        before = b"" if old is None else held_by(old, topics)
        part = record.parts[new.member_id] = Part(
            who(new), before, notified_ms=draft.now_ms, is_released=releases
        )
    if new.epoch != record.generation or new.state is MemberState.UNREVOKED_PARTITIONS:
        return
    if part.assigned_ms == NEVER_MS and not is_same and old is not None and _gave_up(old, new):
        part.joined_ms = draft.now_ms
    part.after = part.before if is_same else held_by(new, topics)
    part.assigned_ms = draft.now_ms


def resumes(draft: Draft, group: ConsumerGroup, old: Member, new: Member) -> None:
    """A static member has come back under another id, and nothing else changes."""
    draft.report(Resumed(group.group_id, old.member_id, who(new)))


def is_assigned(draft: Draft, group: ConsumerGroup) -> None:
    """The target of the group epoch is computed."""
    if group.rebalance is not None and group.members:
        group.rebalance.assigned_ms = draft.now_ms


def may_be_complete(draft: Draft, group: ConsumerGroup) -> None:
    """Report the rebalance if every member has what it is to have."""
    record = group.rebalance
    if record is not None and group.state in (GroupState.STABLE, GroupState.EMPTY):
        record.is_complete = True
        _report(draft, group, record)


def gives_way(draft: Draft, group: ConsumerGroup) -> None:
    """If a rebalance is under way, report it as one that ends before every member has its partitions."""
    if group.rebalance is not None:
        _report(draft, group, group.rebalance)


def who(member: Member) -> Who:
    """The names by which people know a member."""
    return Who(member.member_id, member.client_id, member.client_host, member.instance_id)


def _report(draft: Draft, group: ConsumerGroup, record: Rebalance) -> None:
    record.ended_ms = draft.now_ms
    group.rebalance = None
    draft.report(record)


def _cause(draft: Draft, group: ConsumerGroup, noted: Noted) -> tuple[Cause, Iterable[Who]]:
    """The cause of the epoch that begins, and the members that set it off."""
    if noted.removed:
        detail = "" if noted.cause is None else str(noted.cause.trigger)
        return Cause(_CAUSES[noted.gone], detail), map(who, noted.removed)
    if noted.cause is not None:
        return noted.cause, ()
    if new := [member for old, member in noted.put if old is None and member.epoch == JOINS]:
        return Cause(Trigger.MEMBER_JOINED, noted.detail), map(who, new)
    changed = [(old, member) for old, member in noted.put if old is not None]
    if changed:
        old, member = changed[-1]
        is_same = (old.topic_names, old.regex) == (member.topic_names, member.regex)
        if is_same:
            return Cause(Trigger.ASSIGNOR_CHANGED), (who(member),)
        return Cause(Trigger.SUBSCRIBED, _difference(old, member)), (who(member),)
    changes = draft.topics.changes_since(group.assigned_ms, group.subscriptions)
    return Cause(Trigger.TOPICS_CHANGED, joined(changes, "; ")), ()


def _difference(old: Member, new: Member) -> str:
    added = [f"+{topic}" for topic in _some(new.topic_names - old.topic_names)]
    removed = [f"-{topic}" for topic in _some(old.topic_names - new.topic_names)]
    expressions = [f"{sign}{regex}" for sign, regex in (("+", new.regex), ("-", old.regex)) if regex]
    return joined([*added, *removed, *(expressions if old.regex != new.regex else ())])


def _some(topics: frozenset[str]) -> list[str]:
    """The topics, sorted; of many only some, as a text does not hold more."""
    return sorted(islice(topics, MOST_CHARACTERS))


def _gave_up(old: Member, new: Member) -> bool:
    """True if the member had partitions that it has no more."""
    return bool(old.revoking) or any(
        not partitions.keys() <= new.assigned.get(topic_id, {}).keys()
        for topic_id, partitions in old.assigned.items()
    )
