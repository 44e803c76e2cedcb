"""Special rules for requests about groups."""

from __future__ import annotations

from collections.abc import Awaitable, Set
from dataclasses import replace

from kshim.access.asker import ERRORS, Asker
from kshim.access.rules import Need, Perform, each, name_of, refused, whole
from kshim.answering.authorized_operations import GROUP_OPERATIONS
from kshim.answering.consumer_protocol import is_served
from kshim.api.join_group import FIRST_VERSION_WITH_NULL_PROTOCOL
from kshim.api.sync_group import FIRST_VERSION_WITH_PROTOCOL
from kshim.cluster.acl import AclOperation, AclResource
from kshim.turns.promise import settled
from kshim.turns.slices import in_slices
from schemas.error_code import ErrorCode
from schemas.mapped import Mapped
from schemas.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from schemas.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from schemas.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from schemas.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from schemas.messages.join_group import JoinGroupRequest, JoinGroupResponse
from schemas.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupResponse

TOPIC, GROUP = AclResource.TOPIC, AclResource.GROUP
DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED
FIRST_VERSION_OF_FIND_WITH_KEYS = 4
FIRST_VERSION_OF_FETCH_WITH_GROUPS = 8
WITH_OPERATIONS_US = 10
COORDINATED = {0: GROUP, 1: AclResource.TRANSACTIONAL_ID}
"""The type of resource that a key of FindCoordinator names, by the key's type."""
MESSAGES = {
    GROUP: "Group authorization failed.",
    AclResource.TRANSACTIONAL_ID: "Transactional Id authorization failed.",
}

_of_member = whole(Need(AclOperation.READ, GROUP, "group_id"))


def join_group(
    asker: Asker, request: JoinGroupRequest, perform: Perform[JoinGroupRequest, JoinGroupResponse]
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    """Refuse with a null protocol name, or an empty one in versions that have no null."""
    if asker.may(AclOperation.READ, GROUP, request.group_id):
        return perform(request)
    protocol_name = None if asker.version >= FIRST_VERSION_WITH_NULL_PROTOCOL else ""
    return JoinGroupResponse(error_code=DENIED, generation_id=-1, protocol_name=protocol_name)


def sync_group(
    asker: Asker, request: SyncGroupRequest, perform: Perform[SyncGroupRequest, SyncGroupResponse]
) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    """Check the right to read the group. A request without a protocol is refused for that first."""
    lacks = request.protocol_type is None or request.protocol_name is None
    if asker.version >= FIRST_VERSION_WITH_PROTOCOL and lacks:
        return perform(request)
    return _of_member(asker, request, perform)


def find_coordinator(
    asker: Asker,
    request: FindCoordinatorRequest,
    perform: Perform[FindCoordinatorRequest, FindCoordinatorResponse],
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    """Refuse keys that the caller may not describe: up to v3 the one key, from v4 on each key separately.

    A client that may describe none of its keys does not cause the coordinators' topic to be created.
    """
    resource = COORDINATED.get(request.key_type)
    if resource is None:
        return perform(request)
    if asker.version >= FIRST_VERSION_OF_FIND_WITH_KEYS:
        return each("coordinator_keys", AclOperation.DESCRIBE, resource)(asker, request, perform)
    if asker.may(AclOperation.DESCRIBE, resource, request.key):
        return perform(request)
    response: FindCoordinatorResponse = refused(asker, request, ERRORS[resource], MESSAGES[resource])
    return response


_described = each("groups", AclOperation.DESCRIBE, GROUP)


async def describe_groups(
    asker: Asker,
    request: DescribeGroupsRequest,
    perform: Perform[DescribeGroupsRequest, DescribeGroupsResponse],
) -> DescribeGroupsResponse:
    """Describe the groups that the caller may describe. Add the caller's operations if they are requested."""

    def with_operations(group: DescribedGroup) -> DescribedGroup:
        if group.error_code:
            return group
        operations = asker.operations(GROUP, group.group_id) & GROUP_OPERATIONS
        return replace(group, authorized_operations=operations)

    response = await settled(_described(asker, request, perform))
    if not request.include_authorized_operations:
        return response
    groups = await in_slices(
        asker.broker.rounds,
        asker.context.turn,
        response.groups,
        with_operations,
        lambda _: WITH_OPERATIONS_US,
    )
    return replace(response, groups=tuple(groups))


# ---- groups of the consumer protocol


async def consumer_group_heartbeat(
    asker: Asker,
    request: ConsumerGroupHeartbeatRequest,
    perform: Perform[ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse],
) -> ConsumerGroupHeartbeatResponse:
    """Check the right to read the group, and to describe all topics that the request names. What a regular
    expression matches is filtered when the topics are searched.
    """
    if is_served(asker.broker):
        if not asker.may(AclOperation.READ, GROUP, request.group_id):
            return ConsumerGroupHeartbeatResponse(error_code=DENIED)
        names = tuple(dict.fromkeys(request.subscribed_topic_names or ()))
        if names and len(await asker.may_each(AclOperation.DESCRIBE, TOPIC, names)) < len(names):
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return await settled(perform(request))


_consumer_groups_described = each("group_ids", AclOperation.DESCRIBE, GROUP)
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


async def consumer_group_describe(
    asker: Asker,
    request: ConsumerGroupDescribeRequest,
    perform: Perform[ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse],
) -> ConsumerGroupDescribeResponse:
    """Describe the groups that the caller may describe, if it may describe all topics of their assignments.
    Add the caller's operations if they are requested.
    """
    if not is_served(asker.broker):
        return await settled(perform(request))

    def with_operations(group: DescribedConsumerGroup) -> DescribedConsumerGroup:
        if group.error_code or not request.include_authorized_operations:
            return group
        operations = asker.operations(GROUP, group.group_id) & GROUP_OPERATIONS
        return replace(group, authorized_operations=operations)

    response = await settled(_consumer_groups_described(asker, request, perform))
    topics = {topic for group in response.groups for topic in _assigned(group)}
    seen = await asker.may_each(AclOperation.DESCRIBE, TOPIC, sorted(topics))
    groups = [with_operations(_unless_hidden(group, seen)) for group in response.groups]
    groups.sort(key=lambda group: group.error_code != DENIED)  # as from Kafka, which denies first
    return replace(response, groups=tuple(groups))


def _unless_hidden(group: DescribedConsumerGroup, allowed: Set[str]) -> DescribedConsumerGroup:
    if _assigned(group) <= allowed:
        return group
    return DescribedConsumerGroup(
        group_id=group.group_id,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message=HIDDEN_TOPICS,
    )


def _assigned(group: DescribedConsumerGroup) -> set[str]:
    """The names of the topics in the assignments of a group's members."""
    return {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }


# ---- committed offsets


async def offset_fetch(
    asker: Asker, request: OffsetFetchRequest, perform: Perform[OffsetFetchRequest, OffsetFetchResponse]
) -> OffsetFetchResponse:
    """Fetch the offsets of topics that the caller may describe.

    If the request names topics, the others are refused. If it asks for all, the others are left out.
    """
    if asker.version < FIRST_VERSION_OF_FETCH_WITH_GROUPS:
        if not asker.may(AclOperation.DESCRIBE, GROUP, request.group_id):
            response: OffsetFetchResponse = refused(asker, request, DENIED)
            return response
        if request.topics is None:
            return await _visible(asker, await settled(perform(request)))
        return await settled(each("topics", AclOperation.DESCRIBE, TOPIC)(asker, request, perform))
    group_ids = list(dict.fromkeys(group.group_id for group in request.groups))
    allowed = await asker.may_each(AclOperation.DESCRIBE, GROUP, group_ids)
    return await _of_groups(asker, request, perform, allowed)


async def _visible(asker: Asker, response: OffsetFetchResponse) -> OffsetFetchResponse:
    """Remove from an answer the topics that the caller may not describe."""
    names = list({topic.name for topic in response.topics})
    allowed = await asker.may_each(AclOperation.DESCRIBE, TOPIC, names, quietly=True)
    return replace(response, topics=tuple(topic for topic in response.topics if topic.name in allowed))


async def _of_groups(
    asker: Asker,
    request: OffsetFetchRequest,
    perform: Perform[OffsetFetchRequest, OffsetFetchResponse],
    may: set[str],
) -> OffsetFetchResponse:
    """Fetch the groups in `may`, with the topics that the caller may describe."""
    asked = [group for group in request.groups if group.group_id in may]
    names = {
        name
        for group in asked
        for topic in group.topics or ()
        if (name := name_of(asker.broker, topic)) is not None
    }
    denied = names - await asker.may_each(AclOperation.DESCRIBE, TOPIC, sorted(names))
    kept = tuple(_kept(asker, group, denied) for group in asked)
    response = await settled(perform(replace(request, groups=kept)))
    return await _seen(asker, request, may, denied, response)


def _kept(asker: Asker, group: OffsetFetchRequestGroup, denied: set[str]) -> OffsetFetchRequestGroup:
    if group.topics is None or not denied:
        return group
    topics = tuple(topic for topic in group.topics if name_of(asker.broker, topic) not in denied)
    return replace(group, topics=topics)


async def _seen(
    asker: Asker, request: OffsetFetchRequest, may: set[str], denied: set[str], response: OffsetFetchResponse
) -> OffsetFetchResponse:
    """Return the answer about all requested groups, in the order of the request."""
    every = [group for group in request.groups if group.topics is None and group.group_id in may]
    names = {
        name
        for group in (response.groups if every else ())
        for topic in group.topics
        if (name := name_of(asker.broker, topic)) is not None
    }
    visible = await asker.may_each(AclOperation.DESCRIBE, TOPIC, sorted(names), quietly=True)
    answered = iter(response.groups)
    groups = (
        _answered(asker, group, next(answered), denied, names - visible)
        if group.group_id in may
        else OffsetFetchResponseGroup(group_id=group.group_id, topics=(), error_code=DENIED)
        for group in request.groups
    )
    return replace(response, groups=tuple(groups))


def _answered(
    asker: Asker,
    group: OffsetFetchRequestGroup,
    answer: OffsetFetchResponseGroup,
    denied: set[str],
    hidden: set[str],
) -> OffsetFetchResponseGroup:
    """Return the answer about one group. If it was asked for by topics, refusals are added for those in
    `denied`. If all its topics were asked for, those in `hidden` are left out.
    """
    if answer.error_code:
        return answer
    if group.topics is None:
        seen = tuple(topic for topic in answer.topics if name_of(asker.broker, topic) not in hidden)
        return replace(answer, topics=seen)
    refused_topics = (topic for topic in group.topics if name_of(asker.broker, topic) in denied)
    topics: tuple[OffsetFetchRequestTopics | OffsetFetchResponseTopics, ...] = (
        *answer.topics,
        *refused_topics,
    )
    return replace(answer, topics=Mapped(_answered_topic, topics))


def _answered_topic(topic: OffsetFetchRequestTopics | OffsetFetchResponseTopics) -> OffsetFetchResponseTopics:
    """Return the answer about a topic. For a denied topic it is made only now, when it is written."""
    if isinstance(topic, OffsetFetchResponseTopics):
        return topic
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=-1,
                metadata="",
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            )
            for index in topic.partition_indexes
        ),
    )
