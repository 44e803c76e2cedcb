"""Heartbeat (12): a member says that it lives. The answer says whether it must join again."""

from __future__ import annotations

from kshim.answering.views import GroupsView
from kshim.callers import RequestContext
from kshim.callers.patience import is_patient
from kshim.turns.promise import Answer
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(
    broker: GroupsView, context: RequestContext, request: HeartbeatRequest
) -> Answer[HeartbeatResponse]:
    """Forward to the group's coordinator.

    The coordinator may park the request if the client can wait, and no other request has followed on its
    connection yet.
    """
    if context.client is not None:
        context.client.member = request
    if broker.config.group_heartbeat_park_enable and is_patient(context) and not context.turn.fired:
        return broker.groups.heartbeat(context, request)
    return broker.groups.submit(context, request)
