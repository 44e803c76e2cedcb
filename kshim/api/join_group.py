"""JoinGroup (11): a member joins a group, and waits for the others.

If the answer has no protocol, the protocol's name is "" up to v6 and null from v7 on (KIP-559).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from kshim.answering.views import GroupsView
from kshim.callers import RequestContext
from kshim.callers.context import NamedMember
from kshim.turns.later import Later, then
from schemas.messages.join_group import JoinGroupRequest, JoinGroupResponse

FIRST_VERSION_WITH_NULL_PROTOCOL = 7


def join_group(
    broker: GroupsView, context: RequestContext, request: JoinGroupRequest
) -> Later[JoinGroupResponse]:
    """Forward to the group's coordinator, which answers when the join phase is complete."""
    answer = then(broker.groups.submit(context, request), partial(_remember, context, request.group_id))
    if context.api_version >= FIRST_VERSION_WITH_NULL_PROTOCOL:
        return then(answer, _with_null_protocol)
    return then(answer, _with_empty_protocol)


def _remember(context: RequestContext, group_id: str, response: JoinGroupResponse) -> JoinGroupResponse:
    """Note which member the client is, even if the answer only gives it a member id to join with."""
    if context.client is not None and response.member_id:
        context.client.member = NamedMember(group_id, response.member_id)
    return response


def _with_null_protocol(response: JoinGroupResponse) -> JoinGroupResponse:
    return response if response.protocol_name else replace(response, protocol_name=None)


def _with_empty_protocol(response: JoinGroupResponse) -> JoinGroupResponse:
    return response if response.protocol_name is not None else replace(response, protocol_name="")
