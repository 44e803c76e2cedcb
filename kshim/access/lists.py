"""Rules for requests that list things: they silently leave out what the caller may not describe.

The answers also have the caller's operations on the rest (KIP-430).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from kshim.access.asker import MOST_LOGGED, Asker
from kshim.access.rules import Perform, name_of
from kshim.answering.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from kshim.cluster import INTERNAL_TOPICS
from kshim.cluster.acl import AclOperation, AclResource
from kshim.turns.promise import settled
from kshim.turns.slices import in_slices
from schemas.error_code import ErrorCode
from schemas.mapped import Chained, Mapped
from schemas.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from schemas.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from schemas.messages.list_groups import ListGroupsResponse
from schemas.messages.list_transactions import ListTransactionsResponse
from schemas.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

T = TypeVar("T", MetadataResponseTopic, DescribeTopicPartitionsResponseTopic)

DESCRIBE = AclOperation.DESCRIBE
CLUSTER, TOPIC = AclResource.CLUSTER, AclResource.TOPIC
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NOT_ASKED_FOR = -(1 << 31)
TOPIC_US = 10
FIRST_VERSION_BY_TOPIC_ID = 12
FIRST_VERSION_WITH_NULL_FOR_ALL = 1
FIRST_VERSION_WITH_AUTO_CREATION_FLAG = 4


# ---- topics


async def metadata(
    asker: Asker, request: MetadataRequest, perform: Perform[MetadataRequest, MetadataResponse]
) -> MetadataResponse:
    """Refuse named topics that the caller may not describe; without names, leave such topics out.

    If the request would create a missing topic, the caller needs the right to create it.
    """
    topics = request.topics
    if topics is None or (not topics and asker.version < FIRST_VERSION_WITH_NULL_FOR_ALL):
        return await _visible(asker, request, await settled(perform(request)))
    by_id = any(topic.topic_id.int for topic in topics)
    if asker.version < FIRST_VERSION_BY_TOPIC_ID if by_id else any(topic.name is None for topic in topics):
        return await settled(perform(request))  # the request is invalid, and refused for that
    if by_id:
        topics = tuple(MetadataRequestTopic(topic_id=topic.topic_id, name=None) for topic in topics)
    named = dict.fromkeys(name_of(asker.broker, topic) for topic in topics)
    names = [name for name in named if name is not None]
    described = await asker.may_each(DESCRIBE, TOPIC, names)
    denied = set(names) - described
    missing = [] if by_id else _to_be_made(asker, request, described)
    not_made = set(missing) - await asker.may_each(AclOperation.CREATE, TOPIC, missing)
    return await _perform_some(asker, request, perform, topics, denied, not_made)


def _to_be_made(asker: Asker, request: MetadataRequest, described: set[str]) -> list[str]:
    """The missing topics that the request would create; none if the caller may create all topics."""
    asked = asker.version < FIRST_VERSION_WITH_AUTO_CREATION_FLAG or request.allow_auto_topic_creation
    if not (asked and asker.broker.config.auto_create_topics_enable):
        return []
    missing = [name for name in described if name not in asker.broker.cluster.topics]
    if not missing or asker.may(AclOperation.CREATE, CLUSTER, quietly=True):
        return []
    return missing


async def _perform_some(
    asker: Asker,
    request: MetadataRequest,
    perform: Perform[MetadataRequest, MetadataResponse],
    topics: Sequence[MetadataRequestTopic],
    denied: set[str],
    not_made: set[str],
) -> MetadataResponse:
    """Return the allowed topics, and errors for those in `denied` and `not_made`."""
    kept: list[MetadataRequestTopic] = []
    others: list[MetadataRequestTopic] = []
    for topic in topics:
        name = name_of(asker.broker, topic)
        (others if name in denied or name in not_made else kept).append(topic)

    def refuse(topic: MetadataRequestTopic) -> MetadataResponseTopic:
        return _refused(topic, is_internal=topic.name in not_made and topic.name in INTERNAL_TOPICS)

    response = await settled(perform(replace(request, topics=tuple(kept))))
    # In v0, a request without topics is answered with all topics.
    answered = response.topics if kept else ()
    if not others:
        return await _with_operations(asker, request, response, answered)
    asker.context.stays_the_same = False
    refused = await in_slices(asker.broker.rounds, asker.context.turn, others, refuse, lambda _: TOPIC_US)
    return await _with_operations(asker, request, response, (*answered, *refused))


def _refused(topic: MetadataRequestTopic, *, is_internal: bool) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=DENIED, name=topic.name, topic_id=topic.topic_id, is_internal=is_internal, partitions=()
    )


async def _visible(asker: Asker, request: MetadataRequest, response: MetadataResponse) -> MetadataResponse:
    """Return the answer with only the topics that the caller may describe."""
    names = [topic.name for topic in response.topics if topic.name is not None]
    described = await asker.may_each(DESCRIBE, TOPIC, names, quietly=True)
    seen = [topic for topic in response.topics if topic.name in described]
    return await _with_operations(asker, request, response, seen)


async def _with_operations(
    asker: Asker,
    request: MetadataRequest,
    response: MetadataResponse,
    topics: Sequence[MetadataResponseTopic],
) -> MetadataResponse:
    """Return the answer with these topics, and with the caller's operations if they were requested."""
    if request.include_cluster_authorized_operations:
        response = replace(response, cluster_authorized_operations=_of_cluster(asker))
    if not request.include_topic_authorized_operations:
        return replace(response, topics=tuple(topics))
    with_operations = partial(_topic_with_operations, asker)
    topics = await in_slices(
        asker.broker.rounds, asker.context.turn, topics, with_operations, lambda _: TOPIC_US
    )
    return replace(response, topics=tuple(topics))


def _topic_with_operations(asker: Asker, topic: T) -> T:
    """Replace the operations that the API set for a topic by those that the caller may do."""
    if topic.topic_authorized_operations == NOT_ASKED_FOR:
        return topic
    operations = asker.operations(TOPIC, topic.name or "") & TOPIC_OPERATIONS
    return replace(topic, topic_authorized_operations=operations)


def _of_cluster(asker: Asker) -> int:
    """The caller's operations on the cluster; 0 if the caller may not describe the cluster."""
    return asker.operations(CLUSTER) & CLUSTER_OPERATIONS if asker.may(DESCRIBE, CLUSTER) else 0


async def describe_topic_partitions(
    asker: Asker,
    request: DescribeTopicPartitionsRequest,
    perform: Perform[DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse],
) -> DescribeTopicPartitionsResponse:
    """Refuse named topics that the caller may not describe; without names, leave such topics out.

    The right is checked topic by topic while the page is filled, so topics behind the page are never checked.
    """
    denied: list[str] = []

    def may_see(name: str) -> bool:
        allowed = asker.may(DESCRIBE, TOPIC, name, quietly=not request.topics or len(denied) >= MOST_LOGGED)
        if not allowed and request.topics:
            denied.append(name)
        return allowed

    asker.context.may_see = may_see
    response = await settled(perform(request))
    with_operations = partial(_topic_with_operations, asker)
    seen = await in_slices(
        asker.broker.rounds, asker.context.turn, response.topics, with_operations, lambda _: TOPIC_US
    )
    return replace(response, topics=Chained(seen, Mapped(_not_described, denied)))


def _not_described(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=DENIED, name=name)


# ---- groups, transactions, the cluster


async def list_groups(
    asker: Asker, request: object, perform: Perform[object, ListGroupsResponse]
) -> ListGroupsResponse:
    """List all groups if the caller may describe the cluster, else the groups that it may describe."""
    response = await settled(perform(request))
    if asker.may(DESCRIBE, CLUSTER, quietly=True):
        return response
    names = [group.group_id for group in response.groups]
    allowed = await asker.may_each(DESCRIBE, AclResource.GROUP, names, quietly=True)
    return replace(response, groups=tuple(each for each in response.groups if each.group_id in allowed))


async def list_transactions(
    asker: Asker, request: object, perform: Perform[object, ListTransactionsResponse]
) -> ListTransactionsResponse:
    """List the transactions whose transactional ids the caller may describe."""
    response = await settled(perform(request))
    names = [state.transactional_id for state in response.transaction_states]
    allowed = await asker.may_each(DESCRIBE, AclResource.TRANSACTIONAL_ID, names, quietly=True)
    seen = tuple(state for state in response.transaction_states if state.transactional_id in allowed)
    return replace(response, transaction_states=seen)


async def describe_cluster(
    asker: Asker,
    request: DescribeClusterRequest,
    perform: Perform[DescribeClusterRequest, DescribeClusterResponse],
) -> DescribeClusterResponse:
    """Answer every caller; describing the brokers needs no right.

    Add the caller's operations if requested.
    """
    response = await settled(perform(request))
    if response.error_code or not request.include_cluster_authorized_operations:
        return response
    return replace(response, cluster_authorized_operations=_of_cluster(asker))
