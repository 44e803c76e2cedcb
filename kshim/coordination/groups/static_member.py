"""A static member that comes back without its member id (KIP-345).

The member gets a new member id, and keeps its place and assignment; requests with the old id are fenced. If
the group is stable and would choose the same protocol again, there is no rebalance.
"""

from __future__ import annotations

from kshim.coordination.decision import Caller
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.member import Member
from kshim.coordination.groups.membership import update_member
from kshim.coordination.groups.offered import Protocols
from kshim.coordination.groups.parked import answer_heartbeat, refuse_sync
from kshim.coordination.groups.rebalance import listed, rebalance_or_complete
from kshim.coordination.groups.rebalance_record import Resumed, TwoHolders, Who, who
from kshim.coordination.groups.recording import departs
from kshim.coordination.groups.sizes import group_fits
from kshim.coordination.groups.states import State
from kshim.coordination.groups.trigger import Gone, Trigger
from schemas.error_code import ErrorCode
from schemas.messages.join_group import JoinGroupRequest, JoinGroupResponse

FIRST_VERSION_WITH_SKIP_ASSIGNMENT = 9


def replace(
    draft: Draft,
    group: ClassicGroup,
    member: Member,
    member_id: str,
    caller: Caller,
    request: JoinGroupRequest,
    protocols: Protocols,
) -> None:
    """Give `member` the id `member_id`; rebalance only if the other members are concerned."""
    leader_before, before = group.leader or "", who(member)
    after = Who(member_id, caller.client_id, caller.client_host, member.group_instance_id)
    is_alive = member.parked_heartbeat is not None  # a lost connection would have released it
    _take_place(draft, group, member, member_id)
    if is_alive:
        draft.report(TwoHolders(group.group_id, before, after))
    else:
        group.replaced.add(before, after)
    member.is_now(caller.client_id, caller.client_host)
    update_member(draft, group, member, caller, request, protocols)
    if (
        group.state is State.STABLE
        and group.select_protocol() == group.protocol_name
        and group_fits(group, draft.settings)
    ):
        group.take_join(member)
        _goes_on(draft, group, member)
        if not is_alive:
            draft.report(Resumed(group.group_id, before.member_id, who(member)))
        draft.reply(caller.token, _resumed(group, member, caller, leader_before))
    else:
        cause = Trigger.STATIC_MEMBER_REPLACED
        rebalance_or_complete(draft, group, cause, [who(member)], request.reason or "")


def report_fenced(draft: Draft, group: ClassicGroup, member_id: str) -> None:
    """Report that a replaced member still lives: its client has just sent a request. Once for each."""
    known = group.replaced.take(member_id)
    if known is not None:
        before, after = known
        draft.report(TwoHolders(group.group_id, before, after))


def fence(draft: Draft, group: ClassicGroup, member: Member) -> None:
    """Fence the client of `member`: give the member a new id that no client knows."""
    assert member.group_instance_id is not None
    old_id = member.member_id
    _take_place(draft, group, member, draft.new_member_id(member.group_instance_id))
    if group.state is State.STABLE and group_fits(group, draft.settings):
        _goes_on(draft, group, member)
        draft.report(Resumed(group.group_id, old_id, who(member)))
    else:
        cause, detail = Trigger.STATIC_MEMBER_REPLACED, str(Trigger.ASKED_FOR)
        rebalance_or_complete(draft, group, cause, [who(member)], detail=detail)


def _take_place(draft: Draft, group: ClassicGroup, member: Member, member_id: str) -> None:
    """Give `member` another id, with a whole session, and fence the old id."""
    _fence(draft, group, member)
    departs(draft, group, member, Gone.REPLACED)
    draft.timers.cancel(member.timer)
    group.rename(member, member_id)
    member.is_new = False
    draft.restart_session(member)


def _goes_on(draft: Draft, group: ClassicGroup, member: Member) -> None:
    """Keep the generation: write the group with the new id."""
    group.departed.take()
    draft.write_group(group)


def _fence(draft: Draft, group: ClassicGroup, member: Member) -> None:
    """Answer FENCED_INSTANCE_ID to the requests that are parked under the old id."""
    parked_join = group.take_join(member)
    if parked_join is not None:
        fenced = JoinGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID, member_id=member.member_id)
        draft.reply(parked_join, fenced)
    refuse_sync(draft, member, ErrorCode.FENCED_INSTANCE_ID)
    answer_heartbeat(draft, member, ErrorCode.FENCED_INSTANCE_ID)


def _resumed(group: ClassicGroup, member: Member, caller: Caller, leader_before: str) -> JoinGroupResponse:
    """The answer to a member that goes on in its generation.

    A leader that comes back must not assign partitions again. From v9 on the answer says so with
    SkipAssignment (KIP-814). Below v9 it names the old id as the leader, so that the member takes itself for
    a follower.
    """
    can_skip = caller.api_version >= FIRST_VERSION_WITH_SKIP_ASSIGNMENT
    leads = can_skip and group.leader == member.member_id
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=(group.leader or "") if can_skip else leader_before,
        skip_assignment=leads,
        member_id=member.member_id,
        members=listed(group) if leads else (),
    )
