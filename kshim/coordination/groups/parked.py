"""Heartbeats and SyncGroups that are parked, and how they are answered before their time, or refused.

Each member has at most one of each. SyncGroups wait for the leader's SyncGroup, and are refused if the group
rebalances before it comes. All heartbeats are answered when the group ceases to be stable.
"""

from __future__ import annotations

from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.member import Member
from schemas.error_code import ErrorCode
from schemas.messages.heartbeat import HeartbeatResponse
from schemas.messages.sync_group import SyncGroupResponse

HEARTBEATS = {error: HeartbeatResponse(error_code=error) for error in ErrorCode}
"""The answers to heartbeats, made once: the most frequent request needs no new message."""
TOGETHER_MS = 20
"""The answers that are due within such a time leave together, as each turn of the reactor has its cost."""


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
