"""SyncGroup (14): hand in assignments, and be answered with one's own.

From v5 on the protocol type and name must be there (KIP-559); that is checked before anything else.
"""

from __future__ import annotations

from kshim.requests import Broker, RequestContext
from kshim.requests.later import Later
from schemas.error_code import ErrorCode
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupResponse

FIRST_VERSION_WITH_PROTOCOL = 5


def sync_group(
    broker: Broker, context: RequestContext, request: SyncGroupRequest
) -> Later[SyncGroupResponse]:
    """Be answered when the leader's assignments are durable."""
    if context.api_version >= FIRST_VERSION_WITH_PROTOCOL and (
        request.protocol_type is None or request.protocol_name is None
    ):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return broker.groups.submit(context, request)
