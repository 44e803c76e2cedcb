"""Heartbeat (12): "I am alive", answered with whether to join again. The most frequent request; O(1)."""

from __future__ import annotations

from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.states import ANSWERS, State
from kshim.coordination.groups.timers import Timers
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.heartbeat import HeartbeatRequest

_ANSWERS = ANSWERS[ApiKey.HEARTBEAT]


def heartbeat(timers: Timers, now_ms: int, group: ClassicGroup, request: HeartbeatRequest) -> ErrorCode:
    """Restart the member's session and tell it how the group stands.

    A member that still holds the old generation is heard during the join phase: it is told
    REBALANCE_IN_PROGRESS, and its session goes on.
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
    return answer
