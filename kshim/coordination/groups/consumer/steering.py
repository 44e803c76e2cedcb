"""Events that an administrator can cause in a consumer group; see `groups.steering`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kshim.coordination.groups.consumer.fencing import fence
from kshim.coordination.groups.consumer.member import GOES_AWAY
from kshim.coordination.groups.consumer.membership import check_holder, take_place
from kshim.coordination.groups.consumer.partitions import HOLDS_NOTHING
from kshim.coordination.groups.consumer.recording import Cause, resumes
from kshim.coordination.groups.consumer.refused import Refused
from kshim.coordination.groups.consumer.targets import assign_later, bump_if_changed
from kshim.coordination.groups.consumer.waiting import take
from kshim.coordination.groups.consumer.writing import Writing
from kshim.coordination.groups.steering_requests import ExpireMember, FenceMember, ForceRebalance
from kshim.coordination.groups.trigger import Gone, Trigger
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse


def steer(it: Writing, request: ForceRebalance | ExpireMember | FenceMember) -> ErrorCode:
    """Cause the event. UNKNOWN_MEMBER_ID if the member does not exist, or the group has no members."""
    return _STEERS[type(request)](it, request)


def _rebalance(it: Writing, request: ForceRebalance) -> ErrorCode:
    """Begin a new group epoch, and compute a target for it. Who has its target hears of the epoch alone."""
    if not it.group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    it.noted.cause = Cause(Trigger.ASKED_FOR)
    bump_if_changed(it, is_bumped=True)
    assign_later(it)
    return ErrorCode.NONE


def _expire(it: Writing, request: ExpireMember) -> ErrorCode:
    """Remove a member as if its session had ended."""
    member = it.group.members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    it.noted.gone, it.noted.cause = Gone.ENDED, Cause(Trigger.ASKED_FOR)
    fence(it, (member,))
    return ErrorCode.NONE


def _fence(it: Writing, request: FenceMember) -> ErrorCode:
    """Give the place of a static member to an id that no client uses, as if another client had taken it and
    gone away. Another client that comes with the instance id takes it, until the session ends.
    """
    instance_id = request.group_instance_id
    holder = it.group.static_member(instance_id)
    if holder is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    parked = take(it, holder.member_id)
    member_id = it.environment.new_member_id()
    it.cancel_all(holder.member_id)
    away = replace(holder, member_id=member_id, epoch=GOES_AWAY, revoking=HOLDS_NOTHING)
    take_place(it, holder, away)
    it.group.fenced[member_id] = holder.member_id
    it.restart_session(away)
    resumes(it.draft, it.group, holder, away)
    if parked is not None:
        it.draft.reply(parked.caller.token, _fenced(it, holder.member_id, instance_id))
    return ErrorCode.NONE


def _fenced(it: Writing, member_id: str, instance_id: str) -> ConsumerGroupHeartbeatResponse:
    """The answer to a heartbeat of a member whose place is taken."""
    group = it.group
    try:
        check_holder(group, group.static_member(instance_id), member_id, instance_id)
    except Refused as refused:
        return ConsumerGroupHeartbeatResponse(error_code=refused.error, error_message=refused.message)
    raise AssertionError("the place is taken by another member")


_STEERS: dict[type, Callable[[Writing, Any], ErrorCode]] = {
    ForceRebalance: _rebalance,
    ExpireMember: _expire,
    FenceMember: _fence,
}
