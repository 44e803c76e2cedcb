"""DeleteGroups (42): delete groups. Each group's shard deletes it; a failure does not affect the others."""

from __future__ import annotations

from kshim.answering.each_group import ask_each_group
from kshim.answering.views import GroupsView
from kshim.callers import RequestContext
from kshim.coordination.groups.refusals import DeleteGroup
from kshim.turns.promise import settled
from schemas.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


async def delete_groups(
    broker: GroupsView, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    """Delete each group. A group that is named twice is deleted and answered once."""
    group_ids = dict.fromkeys(request.groups_names)

    async def delete(group_id: str) -> DeletableGroupResult:
        return await settled(broker.groups.submit(context, DeleteGroup(group_id)))

    results = await ask_each_group(broker, context, list(group_ids), delete)
    return DeleteGroupsResponse(results=tuple(results))
