"""SyncGroup (14): the leader sends the assignments, and each member gets its assignment.

From v5 on, the request must have the protocol type and name (KIP-559). That is checked before anything else.
"""

from __future__ import annotations

from kshim.answering.views import GroupsView
from kshim.callers import RequestContext
from kshim.callers.context import NamedMember
from kshim.turns.promise import Answer
from schemas.error_code import ErrorCode
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupResponse

FIRST_VERSION_WITH_PROTOCOL = 5


def sync_group(
    broker: GroupsView, context: RequestContext, request: SyncGroupRequest
) -> Answer[SyncGroupResponse]:
    """Forward to the group's coordinator, which answers when the leader's assignments are durable."""
    if context.api_version >= FIRST_VERSION_WITH_PROTOCOL and (
        request.protocol_type is None or request.protocol_name is None
    ):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if context.client is not None:
        context.client.member = NamedMember(request.group_id, request.member_id)
    return broker.groups.submit(context, request)
