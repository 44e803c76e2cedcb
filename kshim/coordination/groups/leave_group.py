"""LeaveGroup (13): members leave, alone or many at once, with one rebalance for all of them.

From v3 on a request lists members. It may name a static member by its instance id alone, which is how an
administrator removes it (KIP-345). From v5 on a request gives reasons (KIP-800).
"""

from __future__ import annotations

from collections.abc import Sequence

from kshim.coordination.decision import Caller
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.membership import remove_member
from kshim.coordination.groups.rebalance import maybe_complete_join, rebalance_or_complete
from kshim.coordination.groups.rebalance_record import Who, who
from kshim.coordination.groups.states import State
from kshim.coordination.groups.trigger import Gone, Trigger
from schemas.error_code import ErrorCode
from schemas.mapped import Mapped
from schemas.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse

FIRST_VERSION_WITH_MEMBERS = 3


def leave_group(draft: Draft, group: ClassicGroup, caller: Caller, request: LeaveGroupRequest) -> None:
    """Remove the members that the request names, in its order; then rebalance once, if a member was removed.

    A member id that was handed out and never used is dropped without a rebalance; a join phase that waited
    for it may end.
    """
    if group.state is State.DEAD:
        draft.reply(caller.token, LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    left: dict[Who, Gone] = {}
    answers = [
        (identity, _leave(draft, group, caller, identity, left))
        for identity in leaving(caller.api_version, request)
    ]
    draft.reply(caller.token, left_members(caller, answers))
    if left:
        reason = next((entry.reason for entry in request.members if entry.reason), "")
        trigger = Trigger.MEMBER_REMOVED if Gone.REMOVED in left.values() else Trigger.MEMBER_LEFT
        rebalance_or_complete(draft, group, trigger, left, reason or "")
    else:
        maybe_complete_join(draft, group)


def leaving(api_version: int, request: LeaveGroupRequest) -> tuple[MemberIdentity, ...]:
    """The members that a request names; below v3 it names one."""
    if api_version >= FIRST_VERSION_WITH_MEMBERS:
        return request.members
    return (MemberIdentity(member_id=request.member_id),)


def left_group(caller: Caller, members: Sequence[MemberResponse]) -> LeaveGroupResponse:
    """The answer; below v3 its error is that of the only member."""
    if caller.api_version >= FIRST_VERSION_WITH_MEMBERS:
        return LeaveGroupResponse(error_code=ErrorCode.NONE, members=members)
    return LeaveGroupResponse(error_code=members[0].error_code)


def unknown_members(caller: Caller, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """The answer for a group that does not exist: all named members are unknown."""
    return left_group(caller, Mapped(_unknown, leaving(caller.api_version, request)))


def _leave(
    draft: Draft, group: ClassicGroup, caller: Caller, identity: MemberIdentity, left: dict[Who, Gone]
) -> ErrorCode:
    member_id = identity.member_id
    if not member_id:
        member_id = group.static_member_id(identity.group_instance_id) or ""
        if not member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
    elif member_id in group.pending_join:
        remove_member(draft, group, member_id, Gone.LEFT)
        return ErrorCode.NONE
    else:
        error = group.validate(member_id, identity.group_instance_id)
        if error is not ErrorCode.NONE:
            return error
    member = group.members[member_id]
    # A member that leaves by itself names its member id; an administrator names the instance id alone.
    by_itself = bool(identity.member_id) and caller.client_id == member.client_id
    gone = left[who(member)] = Gone.LEFT if by_itself else Gone.REMOVED
    remove_member(draft, group, member_id, gone)
    return ErrorCode.NONE


def left_members(caller: Caller, answers: Sequence[tuple[MemberIdentity, ErrorCode]]) -> LeaveGroupResponse:
    """The answer with the error of each named member."""
    return left_group(caller, Mapped(_answer, answers))


def _unknown(identity: MemberIdentity) -> MemberResponse:
    return _answer((identity, ErrorCode.UNKNOWN_MEMBER_ID))


def _answer(answer: tuple[MemberIdentity, ErrorCode]) -> MemberResponse:
    identity, error = answer
    return MemberResponse(
        member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error
    )
