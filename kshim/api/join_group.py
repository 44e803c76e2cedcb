"""JoinGroup (11): the coordinator decides; the answer is fitted to the version.

If there is no protocol, its name is "" up to v6 and null from v7 on (KIP-559).
"""

from __future__ import annotations

from dataclasses import replace

from kshim.requests import Broker, RequestContext
from kshim.requests.later import Later, then
from schemas.messages.join_group import JoinGroupRequest, JoinGroupResponse

FIRST_VERSION_WITH_NULL_PROTOCOL = 7


def join_group(
    broker: Broker, context: RequestContext, request: JoinGroupRequest
) -> Later[JoinGroupResponse]:
    """Forward to the group's coordinator, which answers when the join phase is complete."""
    answer = broker.groups.submit(context, request)
    if context.api_version >= FIRST_VERSION_WITH_NULL_PROTOCOL:
        return then(answer, _with_null_protocol)
    return then(answer, _with_empty_protocol)


def _with_null_protocol(response: JoinGroupResponse) -> JoinGroupResponse:
    return response if response.protocol_name else replace(response, protocol_name=None)


def _with_empty_protocol(response: JoinGroupResponse) -> JoinGroupResponse:
    return response if response.protocol_name is not None else replace(response, protocol_name="")
