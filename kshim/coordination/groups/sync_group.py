"""SyncGroup (14): the leader sends the assignments of all members, and each member gets its assignment.

The leader's request makes the generation durable: it writes one metadata record with all members and their
assignments. The group is stable from then on. The answers, and those to all later requests of the shard, wait
until the record is durable.
"""

from __future__ import annotations

from kshim.coordination.decision import Caller
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.member import Member
from kshim.coordination.groups.parked import refuse_syncs
from kshim.coordination.groups.rebalance import prepare_rebalance
from kshim.coordination.groups.rebalance_record import who
from kshim.coordination.groups.recording import is_assigned, leader_assigns, may_be_complete, syncs
from kshim.coordination.groups.sizes import group_fits
from kshim.coordination.groups.states import ANSWERS, Action, State
from kshim.coordination.groups.trigger import Trigger
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def sync_group(draft: Draft, group: ClassicGroup, caller: Caller, request: SyncGroupRequest) -> None:
    """Park, answer or refuse one SyncGroup."""
    error = _validate(group, request)
    answer = ANSWERS[ApiKey.SYNC_GROUP][group.state] if error is ErrorCode.NONE else error
    if isinstance(answer, ErrorCode):
        draft.reply(caller.token, SyncGroupResponse(error_code=answer))
        return
    member = group.members[request.member_id]
    _heard_from(draft, group, member)
    if answer is Action.ANSWER:
        draft.reply(caller.token, synced(group, member))
        is_assigned(draft, group, member)
        may_be_complete(draft, group)
        return
    _park(draft, member, caller)
    if group.leader == member.member_id:
        _accept_assignments(draft, group, request)


def _validate(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    if group.state in (State.EMPTY, State.DEAD):
        return ErrorCode.NONE
    error = group.validate(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(request.protocol_type, group.protocol_type) or _differs(
        request.protocol_name, group.protocol_name
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _differs(given: str | None, known: str | None) -> bool:
    return given is not None and known is not None and given != known


def _heard_from(draft: Draft, group: ClassicGroup, member: Member) -> None:
    syncs(draft, group, member)
    group.pending_sync.discard(member.member_id)
    if not group.pending_sync:
        draft.cancel_sync(group)


def _park(draft: Draft, member: Member, caller: Caller) -> None:
    older, member.parked_sync = member.parked_sync, caller.token
    if older is not None:
        draft.reply(older, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))


def _accept_assignments(draft: Draft, group: ClassicGroup, request: SyncGroupRequest) -> None:
    """Give each member its assignment, or an empty one if the leader sent none. Unknown member ids are
    ignored.
    """
    assigned = {entry.member_id: entry.assignment for entry in request.assignments}
    for member in group.members.values():
        member.assignment = assigned.get(member.member_id, b"")
    if not group_fits(group, draft.settings):
        _refuse_assignments(draft, group)
        return
    group.transition_to(State.STABLE, draft.now_ms)
    draft.write_group(group)
    leader_assigns(draft, group)
    _answer_parked(draft, group)


def _answer_parked(draft: Draft, group: ClassicGroup) -> None:
    """Answer the SyncGroups that waited for the leader's SyncGroup. O(members)."""
    for member in group.members.values():
        if member.parked_sync is not None:
            draft.reply(member.parked_sync, synced(group, member))
            member.parked_sync = None
            is_assigned(draft, group, member)
            draft.restart_session(member)
    may_be_complete(draft, group)


def _refuse_assignments(draft: Draft, group: ClassicGroup) -> None:
    """Refuse a generation that is too large to store: fail the parked SyncGroups, and rebalance."""
    refuse_syncs(draft, group, ErrorCode.UNKNOWN_SERVER_ERROR)
    leader = group.members.get(group.leader or "")
    prepare_rebalance(draft, group, Trigger.TOO_LARGE_TO_STORE, [who(leader)] if leader else [])


def synced(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    """The answer that carries `member`'s assignment."""
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )
