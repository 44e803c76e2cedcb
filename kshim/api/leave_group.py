"""LeaveGroup (13): members leave a group."""

from __future__ import annotations

from kshim.answering.views import GroupsView
from kshim.callers import RequestContext
from kshim.turns.promise import Answer
from schemas.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse


def leave_group(
    broker: GroupsView, context: RequestContext, request: LeaveGroupRequest
) -> Answer[LeaveGroupResponse]:
    """Forward to the group's coordinator. The answer has an error for each member."""
    return broker.groups.submit(context, request)
