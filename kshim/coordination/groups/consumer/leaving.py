"""LeaveGroup for members of a consumer group: whom it names, who sends it, and what follows."""

from __future__ import annotations

from collections.abc import Sequence

from kshim.coordination.decision import Caller
from kshim.coordination.groups.consumer.fencing import fence
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import Member
from kshim.coordination.groups.consumer.waiting import be_quiet
from kshim.coordination.groups.consumer.writing import Writing
from kshim.coordination.groups.leave_group import leaving, left_members
from kshim.coordination.groups.trigger import Gone
from schemas.error_code import ErrorCode
from schemas.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity


def leave_group(it: Writing, caller: Caller, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Remove the members that a LeaveGroup names, all in one step."""
    found = [
        (identity, named_member(it.group, identity)) for identity in leaving(caller.api_version, request)
    ]
    members = {each.member_id: each for _, each in found if isinstance(each, Member)}
    if members:
        it.noted.gone = how_they_go(caller, found)
        if it.noted.gone is Gone.LEFT:
            be_quiet(it)
        fence(it, tuple(members.values()))
    answers = [
        (identity, each if isinstance(each, ErrorCode) else ErrorCode.NONE) for identity, each in found
    ]
    return left_members(caller, answers)


def named_member(group: ConsumerGroup, identity: MemberIdentity) -> Member | ErrorCode:
    """The member that a LeaveGroup names, by its id, its instance id or both; else the error."""
    if identity.group_instance_id is None:
        return group.members.get(identity.member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    holder = group.static_member(identity.group_instance_id)
    if holder is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if identity.member_id and identity.member_id != holder.member_id:
        return ErrorCode.FENCED_INSTANCE_ID
    return holder


def how_they_go(caller: Caller, found: Sequence[tuple[MemberIdentity, Member | ErrorCode]]) -> Gone:
    """How the members of a LeaveGroup go: by themselves, as they name their member ids, or by an
    administrator.
    """
    by_itself = all(
        identity.member_id and each.client_id == caller.client_id
        for identity, each in found
        if isinstance(each, Member)
    )
    return Gone.LEFT if by_itself else Gone.REMOVED
