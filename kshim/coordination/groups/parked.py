"""Heartbeats that are parked in a stable group, and how they are answered.

Each member has at most one. They are all answered when the group ceases to be stable.
"""

from __future__ import annotations

from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.member import Member
from schemas.error_code import ErrorCode
from schemas.messages.heartbeat import HeartbeatResponse

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
        draft.reply(token, HeartbeatResponse(error_code=error))


def answer_heartbeats(draft: Draft, group: ClassicGroup, error: ErrorCode) -> None:
    """Answer all that are parked. O(members)."""
    for member in group.members.values():
        if member.parked_heartbeat is not None:
            answer_heartbeat(draft, member, error)
