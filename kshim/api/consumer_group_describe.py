"""ConsumerGroupDescribe (69): describe groups of the consumer protocol (KIP-848).

Each group's shard describes it; a failure does not affect the others.
"""

from __future__ import annotations

from kshim.answering.authorized_operations import with_group_operations
from kshim.answering.consumer_protocol import is_served
from kshim.answering.each_group import ask_each_group
from kshim.answering.views import GroupsView
from kshim.callers import RequestContext
from kshim.coordination.groups.consumer.requests import DescribeConsumerGroup
from kshim.turns.promise import settled
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


async def consumer_group_describe(
    broker: GroupsView, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Describe the groups in the request's order, with authorized operations if requested."""
    served = is_served(broker)

    async def describe(group_id: str) -> DescribedGroup:
        if not served:
            return DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
        if not group_id:
            return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
        described = await settled(broker.groups.submit(context, DescribeConsumerGroup(group_id)))
        return with_group_operations(described) if request.include_authorized_operations else described

    def elements(group: DescribedGroup) -> int:
        return len(group.members)

    groups = await ask_each_group(broker, context, request.group_ids, describe, elements=elements)
    return ConsumerGroupDescribeResponse(groups=tuple(groups))
