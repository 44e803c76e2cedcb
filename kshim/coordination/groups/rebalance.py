"""A rebalance from its start to the end of its join phase, and the timers that bound it.

In the join phase every member has to join again. It ends when all have joined, or when the largest rebalance
timeout has passed; members that are missing then are removed. Then all JoinGroups are answered at once, with
a new generation, and the sync phase begins (`sync_group`). The first join phase of an empty group stays open
for the initial rebalance delay.
"""

from __future__ import annotations

from collections.abc import Collection

from kshim.coordination.groups.classic_group import ClassicGroup, InitialDelay
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.member import Member
from kshim.coordination.groups.membership import remove_member
from kshim.coordination.groups.parked import CLOSING_MS, refuse_syncs, release_heartbeats, shorten_heartbeats
from kshim.coordination.groups.rebalance_record import Who, who
from kshim.coordination.groups.recording import begins, departs, join_phase_ends, may_be_complete
from kshim.coordination.groups.states import CAN_REBALANCE, State
from kshim.coordination.groups.trigger import Gone, Trigger
from schemas.error_code import ErrorCode
from schemas.messages.join_group import JoinGroupResponse, JoinGroupResponseMember

SHORTEST_DELAY_MS = 5
"""The shortest initial delay, in ms. Apache Kafka's timer takes about as long, so members that start together
share their first generation.
"""
SHORTEST_EXTENSION_MS = 1_000
"""A join phase that nobody has joined is extended by at least this, in ms: the rebalance timeout may be 0."""


def rebalance_or_complete(
    draft: Draft,
    group: ClassicGroup,
    trigger: Trigger,
    members: Collection[Who],
    reason: str = "",
    detail: str = "",
) -> None:
    """React to a change of membership: start a rebalance if the state allows it, else end the join phase if
    it is complete.

    members: the members that caused the change.
    """
    if group.state in CAN_REBALANCE:
        prepare_rebalance(draft, group, trigger, members, reason, detail)
    else:
        maybe_complete_join(draft, group)


def prepare_rebalance(
    draft: Draft,
    group: ClassicGroup,
    trigger: Trigger,
    members: Collection[Who],
    reason: str = "",
    detail: str = "",
) -> None:
    """Begin a join phase. Parked SyncGroups and Heartbeats are answered REBALANCE_IN_PROGRESS; if a member
    has left, the Heartbeats only after CLOSING_MS. No SyncGroup is waited for any more.
    """
    if group.state is State.COMPLETING_REBALANCE:
        for member in group.members.values():
            member.assignment = b""
    begins(draft, group, trigger, members, reason, detail)
    refuse_syncs(draft, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_sync.clear()
    draft.cancel_sync(group)
    from_empty = group.state is State.EMPTY
    group.transition_to(State.PREPARING_REBALANCE, draft.now_ms)
    if trigger is Trigger.MEMBER_LEFT:
        shorten_heartbeats(draft, group, CLOSING_MS)
    else:
        release_heartbeats(draft, group)
    if from_empty:
        delay_ms = _initial_delay_ms(draft)
        assert group.rebalance is not None
        group.rebalance.delay_ms = draft.settings.group_initial_rebalance_delay_ms
        group.initial_delay = InitialDelay(delay_ms, max(group.rebalance_timeout_ms() - delay_ms, 0))
        draft.arm_join(group, delay_ms)
    elif not maybe_complete_join(draft, group):
        draft.arm_join(group, group.rebalance_timeout_ms())


def _initial_delay_ms(draft: Draft) -> int:
    return max(draft.settings.group_initial_rebalance_delay_ms, SHORTEST_DELAY_MS)


def maybe_complete_join(draft: Draft, group: ClassicGroup) -> bool:
    """End the join phase early if everybody has joined and no initial delay runs; return True if it ended."""
    complete = (
        group.state is State.PREPARING_REBALANCE
        and group.initial_delay is None
        and group.has_all_members_joined
    )
    if complete:
        complete_join(draft, group)
    return complete


def on_join_deadline(draft: Draft, group: ClassicGroup) -> None:
    """Do what the join timer is for: extend the initial delay if members keep arriving, else end the join
    phase.
    """
    if group.state is not State.PREPARING_REBALANCE:
        return
    initial = group.initial_delay
    if initial is not None and initial.member_added and initial.remaining_ms > 0:
        delay_ms = min(_initial_delay_ms(draft), initial.remaining_ms)
        group.initial_delay = InitialDelay(delay_ms, max(initial.remaining_ms - initial.delay_ms, 0))
        draft.arm_join(group, delay_ms)
    else:
        complete_join(draft, group)


def complete_join(draft: Draft, group: ClassicGroup) -> None:
    """End the join phase with the members that have joined. The others are removed, but static members stay
    until their session ends (KIP-345). If no member has joined, extend the join phase.
    """
    draft.cancel_join(group)
    group.initial_delay = None
    release_heartbeats(draft, group)
    _evict_missing_members(draft, group)
    if group.members and not _leader_has_joined(group):
        draft.arm_join(group, max(group.rebalance_timeout_ms(), SHORTEST_EXTENSION_MS))
        return
    group.generation += 1
    group.joined_ms, group.loaded_ms = draft.now_ms, None
    if group.members:
        _begin_sync_phase(draft, group)
    else:
        group.protocol_name = None
        group.keep_subscriptions()
        group.transition_to(State.EMPTY, draft.now_ms)
        draft.write_group(group)
        join_phase_ends(draft, group)
        may_be_complete(draft, group)


def _evict_missing_members(draft: Draft, group: ClassicGroup) -> None:
    missing = [m for m in group.members.values() if m.parked_join is None and not m.is_static]
    for member in missing:
        draft.timers.cancel(member.timer)
        group.remove(member.member_id)
        departs(draft, group, member, Gone.EVICTED)


def _leader_has_joined(group: ClassicGroup) -> bool:
    """Make a member that has joined the leader; return False if none has joined."""
    leader = group.members.get(group.leader or "")
    if leader is None or leader.parked_join is None:
        joined = next((m for m in group.members.values() if m.parked_join is not None), None)
        if joined is None:
            return False
        group.leader = joined.member_id
    return True


def _begin_sync_phase(draft: Draft, group: ClassicGroup) -> None:
    """Answer every parked JoinGroup with the new generation, and wait for a SyncGroup from every member."""
    group.protocol_name = group.select_protocol()
    group.keep_subscriptions()
    group.transition_to(State.COMPLETING_REBALANCE, draft.now_ms)
    join_phase_ends(draft, group)
    for member in group.members.values():
        parked = group.take_join(member)
        if parked is not None:
            draft.reply(parked, joined(group, member))
        member.is_new = False
        member.heartbeat_at_ms = None
        draft.restart_session(member)
    group.pending_sync = set(group.members)
    draft.arm_sync(group, group.rebalance_timeout_ms())


def joined(group: ClassicGroup, member: Member) -> JoinGroupResponse:
    """The answer to `member`'s JoinGroup in the present generation; only the leader's answer lists all
    members.
    """
    is_leader = group.leader == member.member_id
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        member_id=member.member_id,
        members=listed(group) if is_leader else (),
    )


def listed(group: ClassicGroup) -> tuple[JoinGroupResponseMember, ...]:
    """All members with their subscriptions, as the leader needs them to assign partitions. O(members)."""
    return tuple(
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.metadata(group.protocol_name),
        )
        for member in group.members.values()
    )


def on_sync_deadline(draft: Draft, group: ClassicGroup) -> None:
    """Do what the sync timer is for: remove the members that have not sent SyncGroup, and rebalance the
    others.
    """
    if not group.pending_sync or group.state not in (State.COMPLETING_REBALANCE, State.STABLE):
        return
    silent = [who(member) for member in group.members.values() if member.member_id in group.pending_sync]
    for each in silent:
        remove_member(draft, group, each.member_id, Gone.SILENT)
    prepare_rebalance(draft, group, Trigger.SYNC_EXPIRED, silent)


def on_member_deadline(draft: Draft, group: ClassicGroup, member_id: str) -> None:
    """Do what a member's timer is for: remove a member whose session or first JoinGroup has timed out, or
    drop a pending id.

    A member with another parked request stays, as it cannot send heartbeats; the answer restarts its session.
    """
    member = group.members.get(member_id)
    if member is None:
        group.pending_join.discard(member_id)
        draft.pending_ids.remove(group.group_id, member_id)
        maybe_complete_join(draft, group)
    elif not member.is_waiting:
        remove_member(draft, group, member_id, Gone.EXPIRED)
        rebalance_or_complete(draft, group, Trigger.SESSION_EXPIRED, [who(member)])
