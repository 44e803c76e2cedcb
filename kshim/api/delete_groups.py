"""DeleteGroups (42): each group is deleted by its own shard; a failure does not affect the others."""

from __future__ import annotations

from kshim.coordination.groups.refusals import DeleteGroup
from kshim.requests import Broker, RequestContext
from kshim.requests.later import Later, gather, then
from kshim.requests.slices import in_slices
from schemas.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse

GROUP_US = 50


def delete_groups(
    broker: Broker, context: RequestContext, request: DeleteGroupsRequest
) -> Later[DeleteGroupsResponse]:
    """Delete each group; one that is named twice is deleted once, and answered once."""

    def respond(results: list[DeletableGroupResult]) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(results=tuple(results))

    group_ids = dict.fromkeys(request.groups_names)

    def delete(group_id: str) -> Later[DeletableGroupResult]:
        return broker.groups.submit(context, DeleteGroup(group_id))

    answers = in_slices(broker, context, list(group_ids), delete, lambda _: GROUP_US)
    return then(answers, lambda answers: gather(answers, respond))
