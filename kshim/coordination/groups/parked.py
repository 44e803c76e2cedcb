"""Heartbeats and SyncGroups that are parked, and how they are answered before their time, or refused.

Each member has at most one of each. SyncGroups wait for the leader's SyncGroup, and are refused if the group
rebalances before it comes. Heartbeats wait in a stable group, and for CLOSING_MS when a member has left it.
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
"""The answers to heartbeats, made once: the most frequent request needs no new message."""
TOGETHER_MS = 20
"""The answers that are due within such a time leave together, as each turn of the reactor has its cost."""
CLOSING_MS = 100
"""How long after a member has left the others are called. An application may close its consumers one after
another, and one that joins again meanwhile cannot commit when it is closed."""


def park_heartbeat(draft: Draft, member: Member, token: int, park_ms: int) -> None:
    """Hold a heartbeat for at most `park_ms`; an older one of the member is answered NONE."""
    answer_heartbeat(draft, member, ErrorCode.NONE)
    member.parked_heartbeat = token
    deadline_ms = draft.now_ms + park_ms
    draft.timers.arm(member.heartbeat_timer, deadline_ms - deadline_ms % TOGETHER_MS)


def answer_heartbeat(draft: Draft, member: Member, error: ErrorCode) -> None:
    """Answer the heartbeat that `member` has parked, if there is one."""
    token, member.parked_heartbeat = member.parked_heartbeat, None
    if token is not None:
        draft.timers.cancel(member.heartbeat_timer)
        draft.reply(token, HEARTBEATS[error])


def release_heartbeat(draft: Draft, group: ClassicGroup, member: Member) -> None:
    """Answer the heartbeat that `member` has parked, if there is one, like one that arrives now."""
    if member.parked_heartbeat is None:
        return
    if group.state is State.PREPARING_REBALANCE:
        assert group.rebalance is not None
        group.rebalance.told(member.member_id, draft.now_ms)
        answer_heartbeat(draft, member, ErrorCode.REBALANCE_IN_PROGRESS)
    else:
        answer_heartbeat(draft, member, ErrorCode.NONE)


def release_heartbeats(draft: Draft, group: ClassicGroup) -> None:
    """Answer all that are parked, like heartbeats that arrive now. O(members)."""
    for member in group.members.values():
        release_heartbeat(draft, group, member)


def shorten_heartbeats(draft: Draft, group: ClassicGroup, park_ms: int) -> None:
    """Hold those that are parked for no more than `park_ms` from now. O(members)."""
    for member in group.members.values():
        deadline_ms = draft.timers.deadline_ms(member.heartbeat_timer)
        if deadline_ms is not None:
            draft.timers.arm(member.heartbeat_timer, min(deadline_ms, draft.now_ms + park_ms))


def answer_heartbeats(draft: Draft, group: ClassicGroup, error: ErrorCode) -> None:
    """Answer all that are parked. O(members)."""
    for member in group.members.values():
        if member.parked_heartbeat is not None:
            answer_heartbeat(draft, member, error)


def refuse_sync(draft: Draft, member: Member, error: ErrorCode) -> bool:
    """Refuse the SyncGroup that `member` has parked; return whether there was one."""
    token, member.parked_sync = member.parked_sync, None
    if token is None:
        return False
    draft.reply(token, SyncGroupResponse(error_code=error))
    return True


def refuse_syncs(draft: Draft, group: ClassicGroup, error: ErrorCode) -> None:
    """Refuse all that are parked. O(members).

    Each member's session starts anew: it could not expire while the request was parked.
    """
    for member in group.members.values():
        if refuse_sync(draft, member, error):
            draft.restart_session(member)
