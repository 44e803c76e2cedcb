"""ListGroups (16): the groups of this broker, filtered by state (v4, KIP-518) and type (v5, KIP-848)."""

from __future__ import annotations

from kshim.answering.views import GroupsView
from kshim.callers import RequestContext
from schemas.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def list_groups(
    broker: GroupsView, context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse:
    """List the groups as they are now."""
    return broker.groups.list_groups(context, request)
