"""Heartbeat (12): "I am alive", answered with whether to join again."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kshim.requests import Broker, RequestContext
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(
    broker: Broker, context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse | Deferred[HeartbeatResponse]:
    """Ask the coordinator."""
    answer: HeartbeatResponse | Deferred[HeartbeatResponse] = broker.groups.submit(context, request)
    return answer
