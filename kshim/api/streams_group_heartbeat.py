"""StreamsGroupHeartbeat (88): Kafka Streams with group.protocol=streams (KIP-1071), which is not served.

An Apache Kafka with group.coordinator.rebalance.protocols=classic gives the same answer: UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from kshim.answering import Broker
from kshim.answering.warn import warn
from kshim.callers import RequestContext
from kshim.callers.mistake import Mistake
from schemas.error_code import ErrorCode
from schemas.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)


def streams_group_heartbeat(
    broker: Broker, context: RequestContext, request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse:
    """Refuse the member, and say what to change."""
    warn(broker, context, Mistake.STREAMS_PROTOCOL, group=request.group_id)
    return StreamsGroupHeartbeatResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        error_message="kshim serves classic groups: set group.protocol=classic in the application.",
    )
