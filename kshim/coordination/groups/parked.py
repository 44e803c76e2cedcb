"""Heartbeats that are parked in a stable group, and how they are answered.

Each member has at most one. They are all answered when the group ceases to be stable.
"""

from __future__ import annotations

from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.member import Member
from schemas.error_code import ErrorCode
from schemas.messages.heartbeat import HeartbeatResponse


def park_heartbeat(draft: Draft, member: Member, token: int, park_ms: int) -> None:
    """Hold a heartbeat for at most `park_ms`; an older one of the member is answered NONE."""
    answer_heartbeat(draft, member, ErrorCode.NONE)
    member.parked_heartbeat = token
    draft.timers.arm(member.heartbeat_timer, draft.now_ms + park_ms)


def answer_heartbeat(draft: Draft, member: Member, error: ErrorCode) -> None:
    """Answer the heartbeat that `member` has parked, if there is one."""
    token, member.parked_heartbeat = member.parked_heartbeat, None
    if token is not None:
        draft.timers.cancel(member.heartbeat_timer)
        draft.reply(token, HeartbeatResponse(error_code=error))


def answer_heartbeats(draft: Draft, group: ClassicGroup, error: ErrorCode) -> None:
    """Answer all that are parked. O(members)."""
    for member in group.members.values():
        if member.parked_heartbeat is not None:
            answer_heartbeat(draft, member, error)
