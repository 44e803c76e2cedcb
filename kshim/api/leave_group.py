"""LeaveGroup (13): members leave a group."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kshim.requests import Broker, RequestContext
from schemas.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse


def leave_group(
    broker: Broker, context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse | Deferred[LeaveGroupResponse]:
    """Ask the coordinator."""
    answer: LeaveGroupResponse | Deferred[LeaveGroupResponse] = broker.groups.submit(context, request)
    return answer
