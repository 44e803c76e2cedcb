"""Answers or refuses parked Heartbeats and SyncGroups, often before their time is up.

A member has at most one of each. SyncGroups wait for the leader's SyncGroup, and are refused if the group
rebalances before that comes. Heartbeats wait while the group is stable, and CLOSING_MS longer after a member
has left.
"""

from __future__ import annotations

from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.member import Member
from kshim.coordination.groups.states import State
from schemas.error_code import ErrorCode
from schemas.messages.heartbeat import HeartbeatResponse
from schemas.messages.sync_group import SyncGroupResponse

HEARTBEATS = {error: HeartbeatResponse(error_code=error) for error in ErrorCode}
"""The answer to a Heartbeat by error. They are made once, as Heartbeat is the most frequent request."""
TOGETHER_MS = 20
"""Answers that are due within this time leave together, in ms: each turn of the reactor has its cost."""
CLOSING_MS = 100
"""How long after a member has left its group the other members hear of the rebalance, in ms. An application
may close its consumers one after another. If one of them joined again meanwhile, it could not commit when it
is closed in turn.
"""


def park_heartbeat(draft: Draft, member: Member, token: int, park_ms: int) -> None:
    """Park a heartbeat for at most `park_ms`; the member's older one is answered NONE."""
    answer_heartbeat(draft, member, ErrorCode.NONE)
    member.parked_heartbeat = token
    deadline_ms = draft.now_ms + park_ms
    draft.timers.arm(member.heartbeat_timer, deadline_ms - deadline_ms % TOGETHER_MS)


def answer_heartbeat(draft: Draft, member: Member, error: ErrorCode) -> None:
    """Answer the parked heartbeat of `member`, if there is one, with `error`."""
    token, member.parked_heartbeat = member.parked_heartbeat, None
    if token is not None:
        draft.timers.cancel(member.heartbeat_timer)
        draft.reply(token, HEARTBEATS[error])


def release_heartbeat(draft: Draft, group: ClassicGroup, member: Member) -> None:
    """Answer the parked heartbeat of `member`, if there is one, as the group's present state demands."""
    if member.parked_heartbeat is None:
        return
    if group.state is State.PREPARING_REBALANCE:
        assert group.rebalance is not None
        group.rebalance.notified(member.member_id, draft.now_ms)
        answer_heartbeat(draft, member, ErrorCode.REBALANCE_IN_PROGRESS)
    else:
        answer_heartbeat(draft, member, ErrorCode.NONE)


def release_heartbeats(draft: Draft, group: ClassicGroup) -> None:
    """Answer all parked heartbeats as the group's present state demands. O(members)."""
    for member in group.members.values():
        release_heartbeat(draft, group, member)


def shorten_heartbeats(draft: Draft, group: ClassicGroup, park_ms: int) -> None:
    """Make all parked heartbeats due within `park_ms` from now. O(members)."""
    for member in group.members.values():
        deadline_ms = draft.timers.deadline_ms(member.heartbeat_timer)
        if deadline_ms is not None:
            draft.timers.arm(member.heartbeat_timer, min(deadline_ms, draft.now_ms + park_ms))


def answer_heartbeats(draft: Draft, group: ClassicGroup, error: ErrorCode) -> None:
    """Answer all parked heartbeats with `error`. O(members)."""
    for member in group.members.values():
        if member.parked_heartbeat is not None:
            answer_heartbeat(draft, member, error)


def refuse_sync(draft: Draft, member: Member, error: ErrorCode) -> bool:
    """Refuse the parked SyncGroup of `member`; return True if there was one."""
    token, member.parked_sync = member.parked_sync, None
    if token is None:
        return False
    draft.reply(token, SyncGroupResponse(error_code=error))
    return True


def refuse_syncs(draft: Draft, group: ClassicGroup, error: ErrorCode) -> None:
    """Refuse all parked SyncGroups. O(members).

    The session of each of their members starts anew; it could not expire while the request was parked.
    """
    for member in group.members.values():
        if refuse_sync(draft, member, error):
            draft.restart_session(member)
