"""Heartbeat (12): "I am alive", answered with whether to join again. The most frequent request; O(1).

A member learns of a rebalance from the answer to a heartbeat. So the heartbeat of a member whose client can
wait for its answer is parked while the group is stable: the answer leaves when a rebalance begins, when
another request follows on its connection, or shortly before the member would send the next one. Sessions are
not affected: they begin anew when a heartbeat arrives, parked or not.
"""

from __future__ import annotations

from kshim.coordination.decision import Caller
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.member import Member
from kshim.coordination.groups.parked import HEARTBEATS, park_heartbeat
from kshim.coordination.groups.states import ANSWERS, State
from kshim.coordination.groups.timers import Timers
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.heartbeat import HeartbeatRequest

FIRST_PARK_MS = 2_500
"""How long the first heartbeat of a member is parked; the interval of most clients is 3 s."""
LONGEST_PARK_MS = 8_000
"""Clients give up a request that is not answered within 10 s or more."""
EARLY_MS = 50
"""How long before the next heartbeat is expected the answer leaves."""

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
    if answer is not ErrorCode.NONE and group.rebalance is not None:
        group.rebalance.told(member.member_id, now_ms)
    return answer


def heartbeat_that_waits(
    draft: Draft, group: ClassicGroup, caller: Caller, request: HeartbeatRequest
) -> None:
    """The same, but parked if the group is stable."""
    error = heartbeat(draft.timers, draft.now_ms, group, request)
    if error is ErrorCode.NONE:
        member = group.members[request.member_id]
        park_ms = _park_ms(member, draft.now_ms)
        member.heartbeat_at_ms = draft.now_ms
        if group.state is State.STABLE and park_ms > 0:
            park_heartbeat(draft, member, caller.token, park_ms)
            return
    draft.reply(caller.token, HEARTBEATS[error])


def _park_ms(member: Member, now_ms: int) -> int:
    """Until shortly before the next heartbeat, if that comes after as long as this one did."""
    if member.heartbeat_at_ms is None:
        expected_ms = FIRST_PARK_MS
    else:
        expected_ms = now_ms - member.heartbeat_at_ms - EARLY_MS
    return min(expected_ms, member.session_timeout_ms // 3, LONGEST_PARK_MS)
