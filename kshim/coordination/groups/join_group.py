"""JoinGroup (11): who may join, under which id, and whether that starts a rebalance.

The order of the checks is Apache Kafka's, since it decides which of two errors a client sees. The sender of a
JoinGroup without a member id gets a new id. A static member (KIP-345), and any member below v4, joins with it
at once. From v4 on, any other sender gets it with MEMBER_ID_REQUIRED and has to join again (KIP-394), so that
a client that gives up and retries leaves no phantom member behind.
"""

from __future__ import annotations

from kshim.coordination.decision import Caller
from kshim.coordination.groups import static_member
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.member import Member
from kshim.coordination.groups.membership import rebalance_timeout_ms, remove_member, update_member
from kshim.coordination.groups.offered import MOST_NAMES, Protocols
from kshim.coordination.groups.rebalance import joined, maybe_complete_join, rebalance_or_complete
from kshim.coordination.groups.rebalance_record import who
from kshim.coordination.groups.recording import joins
from kshim.coordination.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from kshim.coordination.groups.states import ANSWERS, Action, State
from kshim.coordination.groups.trigger import Gone, Trigger
from kshim.coordination.groups.why_again import why_again
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.join_group import JoinGroupRequest, JoinGroupResponse

FIRST_VERSION_THAT_REQUIRES_MEMBER_ID = 4
LONGEST_PREFIX_BYTES = 32_767 - 37
"""The longest client id or group instance id, in bytes, that leaves room for a dash and a UUID in a member
id.
"""


def join_group(draft: Draft, group: ClassicGroup, caller: Caller, request: JoinGroupRequest) -> None:
    """Admit, park, answer or refuse one JoinGroup to an existing group."""
    if not _has_room(draft, group, request):
        remove_member(draft, group, request.member_id, Gone.REFUSED)
        maybe_complete_join(draft, group)
        refuse_join(draft, caller, ErrorCode.GROUP_MAX_SIZE_REACHED)
    elif group.state is State.DEAD:
        refuse_join(draft, caller, ErrorCode.COORDINATOR_NOT_AVAILABLE, request.member_id)
    elif (protocols := _supported(group, request)) is None:
        refuse_join(draft, caller, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
    elif request.member_id:
        _join_existing(draft, group, caller, request, protocols)
    else:
        _join_new(draft, group, caller, request, protocols)


def refuse_join(draft: Draft, caller: Caller, error: ErrorCode, member_id: str = "") -> None:
    """Answer with `error`, and with the member id of the request or the one handed out."""
    draft.reply(caller.token, JoinGroupResponse(error_code=error, member_id=member_id))


def _has_room(draft: Draft, group: ClassicGroup, request: JoinGroupRequest) -> bool:
    """True if `group.max.size` allows this join.

    During a join phase only the members that have joined count. Apache Kafka refuses a static member that
    comes back to a full group without its id. kshim admits it, because it is a member already.
    """
    limit = draft.settings.group_max_size
    member_id = request.member_id or group.static_member_id(request.group_instance_id)
    member = group.members.get(member_id or "")
    if group.state is State.PREPARING_REBALANCE:
        return (member is not None and member.parked_join is not None) or group.awaiting_join < limit
    return group.state in (State.EMPTY, State.DEAD) or member is not None or len(group.members) < limit


def _supported(group: ClassicGroup, request: JoinGroupRequest) -> Protocols | None:
    """The protocols of the request; None if the sender may not join with them."""
    if len(request.protocols) > MOST_NAMES:
        return None
    protocols = Protocols.of(request.protocols)
    supported = group.supports(request.protocol_type, protocols.names)
    return protocols if supported and group.offered.has_room(protocols.names) else None


def _join_new(
    draft: Draft, group: ClassicGroup, caller: Caller, request: JoinGroupRequest, protocols: Protocols
) -> None:
    instance_id = request.group_instance_id
    prefix = caller.client_id if instance_id is None else instance_id
    if len(prefix.encode()) > LONGEST_PREFIX_BYTES:
        refuse_join(draft, caller, ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    if instance_id is not None:
        member_id = draft.new_member_id(instance_id)
        old_id = group.static_member_id(instance_id)
        if old_id is None:
            _add_member(draft, group, caller, request, member_id, protocols)
        else:
            old = group.members[old_id]
            static_member.replace(draft, group, old, member_id, caller, request, protocols)
        return
    member_id = draft.new_member_id(caller.client_id)
    if caller.api_version < FIRST_VERSION_THAT_REQUIRES_MEMBER_ID:
        _add_member(draft, group, caller, request, member_id, protocols)
        return
    draft.hand_out(group, member_id, request.session_timeout_ms)
    refuse_join(draft, caller, ErrorCode.MEMBER_ID_REQUIRED, member_id)


def _join_existing(
    draft: Draft, group: ClassicGroup, caller: Caller, request: JoinGroupRequest, protocols: Protocols
) -> None:
    if request.member_id in group.pending_join:
        if request.group_instance_id is None:
            draft.pending_ids.remove(group.group_id, request.member_id)
            _add_member(draft, group, caller, request, request.member_id, protocols)
        else:
            refuse_join(draft, caller, ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    error = group.validate(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        refuse_join(draft, caller, error, request.member_id)
        return
    answer = ANSWERS[ApiKey.JOIN_GROUP][group.state]
    if isinstance(answer, ErrorCode):
        refuse_join(draft, caller, answer, request.member_id)
        return
    member = group.members[request.member_id]
    unchanged = member.protocols == protocols
    leads_stable_group = group.state is State.STABLE and group.leader == member.member_id
    if answer is Action.COMPARE and unchanged and not leads_stable_group:
        draft.reply(caller.token, joined(group, member))
        return
    trigger, detail = why_again(draft, group, member, request, protocols)
    update_member(draft, group, member, caller, request, protocols)
    rebalance_or_complete(draft, group, trigger, [who(member)], request.reason or "", detail)


def _add_member(
    draft: Draft,
    group: ClassicGroup,
    caller: Caller,
    request: JoinGroupRequest,
    member_id: str,
    protocols: Protocols,
) -> None:
    member = Member(
        group_id=group.group_id,
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=caller.client_id,
        client_host=caller.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms(caller, request),
        protocols=protocols,
        is_new=True,
    )
    group.add(member, request.protocol_type)
    group.park_join(member, caller.token)
    joins(draft, group, member)
    if group.initial_delay is not None:
        group.initial_delay.member_added = True
    draft.timers.arm(member.timer, draft.now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete(draft, group, Trigger.MEMBER_JOINED, [who(member)], request.reason or "")
