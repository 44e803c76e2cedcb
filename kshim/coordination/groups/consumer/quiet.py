"""Heartbeats that only say that a member lives, in a group where nothing is due: nearly all of them.

They get the answer of `heartbeat`, and have its effect, without its steps.
"""

from __future__ import annotations

from kshim.coordination.decision import Caller
from kshim.coordination.groups.consumer.checks import says_nothing
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import Member
from kshim.coordination.groups.consumer.requests import Patience
from kshim.coordination.groups.consumer.waiting import interval_ms
from kshim.coordination.groups.consumer.writing import Writing
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def answer_quiet(
    it: Writing, caller: Caller, request: ConsumerGroupHeartbeatRequest, patience: Patience
) -> ConsumerGroupHeartbeatResponse | None:
    """Give a member with nothing to do a whole session, and answer it; return None for other heartbeats."""
    member = it.group.members.get(request.member_id)
    if (
        member is None
        or member.epoch != request.member_epoch
        or not says_nothing(request)
        or not _is_settled(it.group, it.now_ms)
        or not member.is_reconciled_to(it.group.epoch)
        or not _is_same(member, caller)
    ):
        return None
    it.restart_session(member)
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=interval_ms(it, patience),
    )


def _is_settled(group: ConsumerGroup, now_ms: int) -> bool:
    """True if the group has its target, and neither topics nor expressions are to be looked at."""
    return (
        group.assignment_epoch == group.epoch
        and not group.subscriptions.regexes
        and not group.needs_refresh(now_ms)
    )


def _is_same(member: Member, caller: Caller) -> bool:
    """True if the member is what the group knows: it speaks the consumer protocol, and calls as before."""
    return (
        member.classic is None
        and member.client_id == caller.client_id
        and member.client_host == caller.client_host
    )
