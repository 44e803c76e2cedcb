"""DescribeGroups (15): describe groups.

Each group's shard describes it; a failure does not affect the others.
"""

from __future__ import annotations

from kshim.answering.authorized_operations import with_group_operations
from kshim.answering.each_group import ask_each_group
from kshim.answering.views import GroupsView
from kshim.callers import RequestContext
from kshim.coordination.groups.refusals import DescribeGroup
from kshim.turns.promise import settled
from schemas.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse


async def describe_groups(
    broker: GroupsView, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """Describe the groups in the request's order, with authorized operations if requested (v3, KIP-430)."""

    async def describe(group_id: str) -> DescribedGroup:
        described = await settled(broker.groups.submit(context, DescribeGroup(group_id)))
        return with_group_operations(described) if request.include_authorized_operations else described

    def elements(group: DescribedGroup) -> int:
        return len(group.members)

    groups = await ask_each_group(broker, context, request.groups, describe, elements=elements)
    return DescribeGroupsResponse(groups=tuple(groups))
