"""Events that an administrator can cause in a group: a rebalance, the end of a session, the fencing of a
member.

Each runs the same code as the real event, so clients see no difference. Kafka has no requests for these
events; it does have requests to remove members, to delete a group and to move its offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kshim.coordination.groups import static_member
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.membership import remove_member
from kshim.coordination.groups.rebalance import maybe_complete_join, prepare_rebalance, rebalance_or_complete
from kshim.coordination.groups.rebalance_record import who
from kshim.coordination.groups.states import CAN_REBALANCE
from kshim.coordination.groups.steering_requests import ExpireMember, FenceMember, ForceRebalance
from kshim.coordination.groups.trigger import Gone, Trigger
from schemas.error_code import ErrorCode


def steer(
    draft: Draft, group: ClassicGroup, request: ForceRebalance | ExpireMember | FenceMember
) -> ErrorCode:
    """Cause the event. UNKNOWN_MEMBER_ID if the member does not exist, or the group has no members to
    rebalance.
    """
    return _STEERS[type(request)](draft, group, request)


def _rebalance(draft: Draft, group: ClassicGroup, request: ForceRebalance) -> ErrorCode:
    """Begin a rebalance, unless the group is in a join phase already."""
    if not group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state in CAN_REBALANCE:
        prepare_rebalance(draft, group, Trigger.ASKED_FOR, ())
    return ErrorCode.NONE


def _expire(draft: Draft, group: ClassicGroup, request: ExpireMember) -> ErrorCode:
    """Remove a member as if its session had ended, even if it has a parked request; or drop a pending id."""
    member = group.members.get(request.member_id)
    if member is None and request.member_id not in group.pending_join:
        return ErrorCode.UNKNOWN_MEMBER_ID
    remove_member(draft, group, request.member_id, Gone.ENDED)
    if member is None:
        maybe_complete_join(draft, group)
    else:
        detail = str(Trigger.ASKED_FOR)
        rebalance_or_complete(draft, group, Trigger.SESSION_EXPIRED, [who(member)], detail=detail)
    return ErrorCode.NONE


def _fence(draft: Draft, group: ClassicGroup, request: FenceMember) -> ErrorCode:
    """Give a static member a new id that no client uses, as if another client had come with its instance id
    and ended. The place stays taken until a client comes with that instance id, or the session ends.
    """
    member_id = group.static_member_id(request.group_instance_id)
    if member_id is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    static_member.fence(draft, group, group.members[member_id])
    return ErrorCode.NONE


_STEERS: dict[type, Callable[[Draft, ClassicGroup, Any], ErrorCode]] = {
    ForceRebalance: _rebalance,
    ExpireMember: _expire,
    FenceMember: _fence,
}
