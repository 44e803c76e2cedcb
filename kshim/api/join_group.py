"""JoinGroup (11): a member joins a group, and waits for the others.

If the answer has no protocol, the protocol's name is "" up to v6 and null from v7 on (KIP-559).
"""

from __future__ import annotations

from dataclasses import replace

from kshim.answering.views import GroupsView
from kshim.callers import RequestContext
from kshim.callers.context import NamedMember
from kshim.turns.promise import Afterwards, Answer, Promise
from schemas.messages.join_group import JoinGroupRequest, JoinGroupResponse

FIRST_VERSION_WITH_NULL_PROTOCOL = 7


def join_group(
    broker: GroupsView, context: RequestContext, request: JoinGroupRequest
) -> Answer[JoinGroupResponse]:
    """Forward to the group's coordinator, which answers when the join phase is complete."""
    answer = broker.groups.submit(context, request)
    if not isinstance(answer, Promise):
        return _answered(context, request, answer)
    later: Promise[JoinGroupResponse] = Promise()
    answer.listen(_answered_later, later, context, request)
    return later


def _answered_later(
    response: JoinGroupResponse | Exception,
    later: Promise[JoinGroupResponse],
    context: RequestContext,
    request: JoinGroupRequest,
) -> Afterwards:
    if isinstance(response, Exception):
        return later.answer(response)
    return later.answer(_answered(context, request, response))


def _answered(
    context: RequestContext, request: JoinGroupRequest, response: JoinGroupResponse
) -> JoinGroupResponse:
    """Note the client's member, and give the response the protocol name of its version."""
    if context.client is not None and response.member_id:
        # The answer may only give the client a member id to join with.
        context.client.member = NamedMember(request.group_id, response.member_id)
    if context.api_version >= FIRST_VERSION_WITH_NULL_PROTOCOL:
        return response if response.protocol_name else replace(response, protocol_name=None)
    return response if response.protocol_name is not None else replace(response, protocol_name="")
