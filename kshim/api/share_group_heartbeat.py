"""ShareGroupHeartbeat (76): a consumer of a share group (KIP-932), which is not served.

An Apache Kafka with share.version=0 gives the same answer: UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from kshim.answering import Broker
from kshim.answering.warn import warn
from kshim.callers import RequestContext
from kshim.callers.mistake import Mistake
from schemas.error_code import ErrorCode
from schemas.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


def share_group_heartbeat(
    broker: Broker, context: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    """Refuse the member, and say what to change."""
    warn(broker, context, Mistake.SHARE_GROUP, group=request.group_id)
    return ShareGroupHeartbeatResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        error_message="kshim serves no share groups: use a consumer of an ordinary group.",
    )
