"""Heartbeat (12): "I am alive", answered with whether to join again."""

from __future__ import annotations

from kshim.requests import Broker, RequestContext
from kshim.requests.later import Later
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(broker: Broker, context: RequestContext, request: HeartbeatRequest) -> Later[HeartbeatResponse]:
    """Ask the coordinator."""
    return broker.groups.submit(context, request)
