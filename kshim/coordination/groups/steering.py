"""What an administrator makes happen to a group: a rebalance, the end of a session, the fencing of a member.

Each goes the way of the event that it stands for, so that clients see what they would see then. Kafka has no
requests for these; removing members, deleting a group and moving its offsets are requests of Kafka's own.
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
from kshim.coordination.groups.refusals import ExpireMember, FenceMember, ForceRebalance
from kshim.coordination.groups.states import CAN_REBALANCE
from kshim.coordination.groups.trigger import Gone, Trigger
from schemas.error_code import ErrorCode


def steer(
    draft: Draft, group: ClassicGroup, request: ForceRebalance | ExpireMember | FenceMember
) -> ErrorCode:
    """Let it happen; UNKNOWN_MEMBER_ID if there is no such member, or none at all to rebalance."""
    return _STEERS[type(request)](draft, group, request)


def _rebalance(draft: Draft, group: ClassicGroup, request: ForceRebalance) -> ErrorCode:
    """Begin a rebalance; one whose members still join goes on."""
    if not group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state in CAN_REBALANCE:
        prepare_rebalance(draft, group, Trigger.ASKED_FOR, ())
    return ErrorCode.NONE


def _expire(draft: Draft, group: ClassicGroup, request: ExpireMember) -> ErrorCode:
    """Remove a member as when its session ends, even while a request of it is parked; or a pending id."""
    member = group.members.get(request.member_id)
    if member is None and request.member_id not in group.pending_join:
        return ErrorCode.UNKNOWN_MEMBER_ID
    remove_member(draft, group, request.member_id, Gone.EXPIRED)
    if member is None:
        maybe_complete_join(draft, group)
    else:
        detail = str(Trigger.ASKED_FOR)
        rebalance_or_complete(draft, group, Trigger.SESSION_EXPIRED, [who(member)], detail=detail)
    return ErrorCode.NONE


def _fence(draft: Draft, group: ClassicGroup, request: FenceMember) -> ErrorCode:
    """Give a static member's place to a new id, of which nothing more is heard: as if another client had come
    with its instance id, and ended. Its session keeps the place until somebody comes with that instance id.
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
