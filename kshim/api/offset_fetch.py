"""OffsetFetch (9): the offsets that groups have committed.

Up to v7 a request is about one group, from v8 on about many; from v10 on it names topics by id. A group's
error is in the group's entry from v8 on, and at the top in v2 to v7. v0 and v1 have only errors of
partitions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter

from kshim.answering.each_group import ask_each_group
from kshim.answering.views import GroupsView
from kshim.callers import RequestContext
from kshim.cluster import KnownCluster
from kshim.coordination.groups.refusals import StableOffsetFetch
from kshim.turns.promise import settled
from schemas.error_code import ErrorCode
from schemas.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

FIRST_VERSION_WITH_GROUP_ERROR = 2
FIRST_VERSION_WITH_GROUPS = 8
FIRST_VERSION_WITH_TOPIC_IDS = 10


async def offset_fetch(
    broker: GroupsView, context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse:
    """Fetch the offsets, group by group in the request's order. The answer always waits for commits under
    way.

    With `require_stable`, offsets that an open transaction may still change are refused (KIP-447).
    """

    async def fetch(group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
        wanted = StableOffsetFetch(group) if request.require_stable else group
        return await settled(broker.groups.submit(context, wanted))

    if context.api_version < FIRST_VERSION_WITH_GROUPS:
        return _one_response(request, await fetch(_one_group(request)), context.api_version)
    by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    ask = partial(_fetch_by_id, broker.cluster, fetch) if by_id else fetch
    groups = await ask_each_group(broker, context, request.groups, ask, attrgetter("group_id"), _elements)
    return OffsetFetchResponse(groups=tuple(groups))


def _elements(group: OffsetFetchResponseGroup) -> int:
    return sum(1 + len(topic.partitions) for topic in group.topics)


def _one_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = request.topics
    return OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else tuple(
            OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes) for t in topics
        ),
    )


def _one_response(
    request: OffsetFetchRequest, group: OffsetFetchResponseGroup, version: int
) -> OffsetFetchResponse:
    if version < FIRST_VERSION_WITH_GROUP_ERROR and group.error_code != ErrorCode.NONE:
        return OffsetFetchResponse(topics=_failed_topics(request, group.error_code))
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in group.topics
        ),
    )


def _failed_topics(request: OffsetFetchRequest, error: int) -> tuple[OffsetFetchResponseTopic, ...]:
    """A group's error on every requested partition. (Apache Kafka lists no partitions, so v1 does not see
    it.)
    """
    return tuple(
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=tuple(
                OffsetFetchResponsePartition(
                    partition_index=index, committed_offset=-1, metadata="", error_code=error
                )
                for index in topic.partition_indexes
            ),
        )
        for topic in request.topics or ()
    )


async def _fetch_by_id(
    cluster: KnownCluster,
    fetch: Callable[[OffsetFetchRequestGroup], Awaitable[OffsetFetchResponseGroup]],
    group: OffsetFetchRequestGroup,
) -> OffsetFetchResponseGroup:
    """Fetch by the topics' names, and answer with their ids. The partitions of an unknown id get an error."""
    if group.topics is None:
        return _with_ids(cluster, await fetch(group))
    known, unknown = [], []
    for wanted in group.topics:
        topic = cluster.topic_by_id(wanted.topic_id)
        if topic is None:
            unknown.append(_unknown_topic(wanted))
        else:
            known.append(replace(wanted, name=topic.name))
    answer = await fetch(replace(group, topics=tuple(known)))
    return answer if answer.error_code else replace(answer, topics=(*answer.topics, *unknown))


def _unknown_topic(wanted: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=wanted.topic_id,
        partitions=tuple(
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, metadata="", error_code=ErrorCode.UNKNOWN_TOPIC_ID
            )
            for index in wanted.partition_indexes
        ),
    )


def _with_ids(cluster: KnownCluster, answer: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
    """Add topic ids to all offsets of a group. A deleted topic has no id, and is left out."""
    topics = tuple(
        replace(topic, topic_id=cluster.topics[topic.name].topic_id)
        for topic in answer.topics
        if topic.name in cluster.topics
    )
    return replace(answer, topics=topics)
