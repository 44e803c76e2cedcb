"""DeleteGroups (42): delete groups. Each group's shard deletes it; a failure does not affect the others."""

from __future__ import annotations

from kshim.answering.each_group import ask_each_group
from kshim.answering.views import GroupsView
from kshim.callers import RequestContext
from kshim.coordination.groups.refusals import DeleteGroup
from kshim.turns.later import Later
from schemas.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


def delete_groups(
    broker: GroupsView, context: RequestContext, request: DeleteGroupsRequest
) -> Later[DeleteGroupsResponse]:
    """Delete each group. A group that is named twice is deleted and answered once."""

    def respond(results: list[DeletableGroupResult]) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(results=tuple(results))

    group_ids = dict.fromkeys(request.groups_names)

    def delete(group_id: str) -> Later[DeletableGroupResult]:
        return broker.groups.submit(context, DeleteGroup(group_id))

    return ask_each_group(broker, context, list(group_ids), delete, respond)
