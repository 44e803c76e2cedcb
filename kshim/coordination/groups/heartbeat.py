"""Heartbeat (12): "I am alive"; the answer says whether to join again. The most frequent request; O(1).

A member hears of a rebalance through the answer to a heartbeat. So, while the group is stable, the heartbeat
of a client that can wait for the answer is parked. The answer leaves when a rebalance begins, when another
request follows on its connection, or shortly before the member would send its next heartbeat. A session
begins anew when a heartbeat arrives, parked or not.
"""

from __future__ import annotations

from kshim.coordination.decision import Caller
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.member import Member
from kshim.coordination.groups.parked import HEARTBEATS, park_heartbeat
from kshim.coordination.groups.states import ANSWERS, State
from kshim.coordination.groups.static_member import report_fenced
from kshim.coordination.groups.timers import Timers
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.heartbeat import HeartbeatRequest

FIRST_PARK_MS = 2_500
"""How long a member's first heartbeat of a generation is parked, in ms; the interval of most
clients is 3 s.
"""
LONGEST_PARK_MS = 8_000
"""The most that a heartbeat is parked, in ms. Clients give up a request after 10 s or more
without an answer.
"""
EARLY_MS = 50
"""The answer leaves this long before the next heartbeat is expected, in ms."""

_ANSWERS = ANSWERS[ApiKey.HEARTBEAT]


def heartbeat(timers: Timers, now_ms: int, group: ClassicGroup, request: HeartbeatRequest) -> ErrorCode:
    """Restart the member's session, and return the answer: NONE, or the error.

    During the join phase, members of the old generation may still send heartbeats: the answer is
    REBALANCE_IN_PROGRESS, and their sessions restart as well.
    """
    answer = _ANSWERS[group.state]
    assert isinstance(answer, ErrorCode)
    if group.state is State.EMPTY or group.state is State.DEAD:
        return answer
    error = group.validate(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    member = group.members[request.member_id]
    timers.arm(member.timer, now_ms + member.session_timeout_ms)
    if answer is not ErrorCode.NONE and group.rebalance is not None:
        group.rebalance.notified(member.member_id, now_ms)
    return answer


def heartbeat_that_waits(
    draft: Draft, group: ClassicGroup, caller: Caller, request: HeartbeatRequest
) -> None:
    """Like `heartbeat`, but park the request if the group is stable."""
    error = heartbeat(draft.timers, draft.now_ms, group, request)
    if error is ErrorCode.NONE:
        member = group.members[request.member_id]
        park_ms = _park_ms(member, draft.now_ms)
        member.heartbeat_at_ms = draft.now_ms
        if group.state is State.STABLE and park_ms > 0:
            park_heartbeat(draft, member, caller.token, park_ms)
            return
    elif error is ErrorCode.FENCED_INSTANCE_ID:
        report_fenced(draft, group, request.member_id)
    draft.reply(caller.token, HEARTBEATS[error])


def _park_ms(member: Member, now_ms: int) -> int:
    """How long to park this heartbeat, in ms: until shortly before the next one, which is expected after the
    same time that passed between the last two.
    """
    if member.heartbeat_at_ms is None:
        expected_ms = FIRST_PARK_MS
    else:
        expected_ms = now_ms - member.heartbeat_at_ms - EARLY_MS
    return min(expected_ms, member.session_timeout_ms // 3, LONGEST_PARK_MS)
