"""ConsumerGroupHeartbeat (68): a consumer with group.protocol=consumer (KIP-848), which is not served.

An Apache Kafka with group.coordinator.rebalance.protocols=classic gives the same answer: UNSUPPORTED_VERSION.
With it consumers fail and say why. If the API were not announced, librdkafka would wait for ever.
"""

from __future__ import annotations

from kshim.answering import Broker
from kshim.answering.warn import warn
from kshim.callers import RequestContext
from kshim.callers.mistake import Mistake
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def consumer_group_heartbeat(
    broker: Broker, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Refuse the member, and say what to change."""
    warn(broker, context, Mistake.CONSUMER_PROTOCOL, group=request.group_id)
    return ConsumerGroupHeartbeatResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        error_message="kshim serves classic groups: set group.protocol=classic in the consumer.",
    )
