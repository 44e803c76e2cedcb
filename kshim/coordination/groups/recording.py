"""Writes a group's record of the rebalance under way: each function notes one event that happens now."""

from __future__ import annotations

from collections.abc import Collection

from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.member import Member
from kshim.coordination.groups.rebalance_record import (
    MOST_NAMED,
    MOST_REASON,
    MOST_SUBSCRIPTION_BYTES,
    NEVER_MS,
    Part,
    Rebalance,
    RebalanceBegan,
    Who,
    who,
)
from kshim.coordination.groups.states import State
from kshim.coordination.groups.trigger import Gone, Trigger


def begins(
    draft: Draft, group: ClassicGroup, trigger: Trigger, members: Collection[Who], reason: str, detail: str
) -> None:
    """A rebalance begins. If one is under way, it ends incomplete and is reported. O(members).

    Members with a parked SyncGroup are noted as answered REBALANCE_IN_PROGRESS now.
    """
    gives_way(draft, group)
    record = Rebalance(
        group.group_id,
        trigger,
        tuple(members)[:MOST_NAMED],
        reason[:MOST_REASON],
        detail[:MOST_REASON],
        draft.now_ms,
    )
    draft.report(RebalanceBegan(group.group_id, trigger, record.members))
    record.generation = group.generation + 1
    record.protocol_type = group.protocol_type or ""
    for member in group.members.values():
        part = record.part(member)
        if member.parked_join is not None:
            part.joined_ms = draft.now_ms
        if member.parked_sync is not None:
            record.notified(member.member_id, draft.now_ms)
    group.rebalance = record
    _take_departed(group, record)


def joins(draft: Draft, group: ClassicGroup, member: Member) -> None:
    """A member's JoinGroup came while the group rebalances; its first one counts."""
    if group.rebalance is not None and group.state is State.PREPARING_REBALANCE:
        part = group.rebalance.part(member)
        if part.joined_ms == NEVER_MS:
            part.joined_ms = draft.now_ms


def departs(draft: Draft, group: ClassicGroup, member: Member, gone: Gone) -> None:
    """A member is gone. The record of the rebalance under way, or of the next one, will say so."""
    heard_ms = draft.now_ms - member.session_timeout_ms if gone is Gone.EXPIRED else NEVER_MS
    part = Part(who(member), before=member.holds, gone=gone, gone_ms=draft.now_ms, heard_ms=heard_ms)
    if not group.departed.add(part) and group.rebalance is not None:
        group.rebalance.parts.pop(member.member_id, None)


def join_phase_ends(draft: Draft, group: ClassicGroup) -> None:
    """The join phase ends: the group has its next generation. O(members)."""
    record = group.rebalance
    assert record is not None
    _take_departed(group, record)
    record.joined_ms = draft.now_ms
    record.generation = group.generation
    record.protocol_type = group.protocol_type or ""
    record.protocol = group.protocol_name or ""
    record.leader = group.leader or ""
    record.votes = group.votes()
    assert group.subscriptions is not None
    for member, subscription in zip(group.members.values(), group.subscriptions, strict=True):
        part = record.part(member)
        part.subscription = subscription if len(subscription) <= MOST_SUBSCRIPTION_BYTES else b""
        part.offers = member.protocols.names


def syncs(draft: Draft, group: ClassicGroup, member: Member) -> None:
    """A member's SyncGroup came; its first one counts."""
    if group.rebalance is not None:
        part = group.rebalance.part(member)
        if part.synced_ms == NEVER_MS:
            part.synced_ms = draft.now_ms


def leader_assigns(draft: Draft, group: ClassicGroup) -> None:
    """The leader's assignments are accepted."""
    assert group.rebalance is not None
    group.rebalance.assigned_ms = draft.now_ms


def is_assigned(draft: Draft, group: ClassicGroup, member: Member) -> None:
    """A member gets its assignment."""
    member.holds = member.assignment
    if group.rebalance is not None:
        part = group.rebalance.part(member)
        part.after, part.assigned_ms = member.assignment, draft.now_ms


def may_be_complete(draft: Draft, group: ClassicGroup) -> None:
    """Report the rebalance if every member has its assignment."""
    record = group.rebalance
    is_over = group.state in (State.STABLE, State.EMPTY) and not group.pending_sync
    if record is None or not is_over:
        return
    record.is_complete = True
    _report(draft, group, record)


def gives_way(draft: Draft, group: ClassicGroup) -> None:
    """If a rebalance is under way, report it as one that ends before every member has its assignment."""
    if group.rebalance is not None:
        _report(draft, group, group.rebalance)


def _report(draft: Draft, group: ClassicGroup, record: Rebalance) -> None:
    record.ended_ms = draft.now_ms
    group.rebalance = None
    draft.report(record)


def _take_departed(group: ClassicGroup, record: Rebalance) -> None:
    """Move the members that are gone into the record; a part that is there already keeps its other fields."""
    for part in group.departed.take():
        known = record.parts.get(part.who.member_id)
        if known is None:
            record.parts[part.who.member_id] = part
        else:
            known.gone, known.gone_ms, known.heard_ms = part.gone, part.gone_ms, part.heard_ms
