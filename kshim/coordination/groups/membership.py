"""Changes one member's place in a group: updates it from a JoinGroup, or removes it.

`rebalance` decides whether such a change starts or ends a rebalance.
"""

from __future__ import annotations

from kshim.coordination.decision import Caller
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.member import Member
from kshim.coordination.groups.offered import Protocols
from kshim.coordination.groups.parked import answer_heartbeat, refuse_sync
from kshim.coordination.groups.recording import departs, joins
from kshim.coordination.groups.timers import TimerKey, TimerKind
from kshim.coordination.groups.trigger import Gone
from schemas.error_code import ErrorCode
from schemas.messages.join_group import JoinGroupRequest, JoinGroupResponse


def update_member(
    draft: Draft,
    group: ClassicGroup,
    member: Member,
    caller: Caller,
    request: JoinGroupRequest,
    protocols: Protocols,
) -> None:
    """Update a member's protocols and timeouts from its JoinGroup, and park the JoinGroup. Its client id and
    host stay as they were.
    """
    group.set_protocols(member, protocols)
    member.session_timeout_ms = request.session_timeout_ms
    member.rebalance_timeout_ms = rebalance_timeout_ms(caller, request)
    park_join(draft, group, member, caller.token)


def rebalance_timeout_ms(caller: Caller, request: JoinGroupRequest) -> int:
    """The rebalance timeout of a JoinGroup. v0 has no such field, so the session timeout is used (KIP-62)."""
    return request.rebalance_timeout_ms if caller.api_version > 0 else request.session_timeout_ms


def park_join(draft: Draft, group: ClassicGroup, member: Member, token: int) -> None:
    """Park `member`'s JoinGroup until the join phase ends; answer its older one REBALANCE_IN_PROGRESS."""
    older = group.park_join(member, token)
    joins(draft, group, member)
    if older is not None:
        draft.reply(
            older,
            JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id),
        )


def remove_member(draft: Draft, group: ClassicGroup, member_id: str, gone: Gone) -> None:
    """Remove a member or a pending id; answer the member's parked requests UNKNOWN_MEMBER_ID.

    Apache Kafka leaves a removed member's parked SyncGroup unanswered; kshim answers every request.
    """
    draft.timers.cancel(TimerKey(TimerKind.MEMBER, group.group_id, member_id))
    member = group.remove(member_id)
    if member is None:
        draft.pending_ids.remove(group.group_id, member_id)
        return
    departs(draft, group, member, gone)
    if member.parked_join is not None:
        draft.reply(member.parked_join, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    refuse_sync(draft, member, ErrorCode.UNKNOWN_MEMBER_ID)
    answer_heartbeat(draft, member, ErrorCode.UNKNOWN_MEMBER_ID)
