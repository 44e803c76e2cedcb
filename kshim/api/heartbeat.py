"""Heartbeat (12): "I am alive", answered with whether to join again."""

from __future__ import annotations

from kshim.requests import Broker, RequestContext
from kshim.requests.later import Later
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(broker: Broker, context: RequestContext, request: HeartbeatRequest) -> Later[HeartbeatResponse]:
    """Forward to the group's coordinator; the reply says whether the member must rejoin."""
    return broker.groups.submit(context, request)
