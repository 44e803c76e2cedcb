"""OffsetDelete (47): delete offsets. The coordinator handles existing partitions; this module refuses the
others.

The coordinator is always asked, because an error of the group comes before errors of topics and partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kshim.answering.divide import answer_in_pieces, divided, merged
from kshim.answering.views import GroupsView
from kshim.callers import RequestContext
from kshim.turns.promise import settled
from schemas.error_code import ErrorCode
from schemas.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def offset_delete(
    broker: GroupsView, context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    """Answer for each partition: first the refused ones, then those that the coordinator answers."""
    return await answer_in_pieces(broker, context, request, _answer)


async def _answer(
    broker: GroupsView, context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    known: list[OffsetDeleteRequestTopic] = []
    refused: list[OffsetDeleteResponseTopic] = []
    for named in request.topics:
        topic = broker.cluster.topics.get(named.name)
        existing, missing = divided(named.partitions, topic)
        if topic is None or missing:
            refused.append(_refused(named.name, missing))
        if existing:
            known.append(replace(named, partitions=existing))
    response = await settled(broker.groups.submit(context, replace(request, topics=tuple(known))))
    if response.error_code or not refused:
        return response
    return OffsetDeleteResponse(topics=merged((*refused, *response.topics)))


def _refused(name: str, partitions: Iterable[OffsetDeleteRequestPartition]) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=name,
        partitions=tuple(
            OffsetDeleteResponsePartition(
                partition_index=partition.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            for partition in partitions
        ),
    )
