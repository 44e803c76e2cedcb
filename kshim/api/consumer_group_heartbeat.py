"""ConsumerGroupHeartbeat (68): a consumer with group.protocol=consumer (KIP-848), which is not served.

The answer is that of an Apache Kafka with group.coordinator.rebalance.protocols=classic: UNSUPPORTED_VERSION,
at which consumers fail and say why. librdkafka would wait for ever for an API that is not announced.
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
