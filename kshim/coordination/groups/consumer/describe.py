"""Describes and lists consumer groups: ConsumerGroupDescribe (69), ListGroups (16)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kshim.coordination.groups.classic_group import CONSUMER
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import Member
from kshim.coordination.groups.consumer.partitions import Assignment as Partitions
from kshim.coordination.groups.consumer.partitions import joined, without_epochs
from kshim.coordination.groups.consumer.topic_names import in_order
from kshim.coordination.groups.consumer.topics import Topics
from schemas.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    TopicPartitions,
)
from schemas.messages.consumer_group_describe import Member as DescribedMember
from schemas.messages.list_groups import ListedGroup, ListGroupsRequest

TYPE = "consumer"
CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def describe(group: ConsumerGroup, topics: Topics, assignors: Iterable[str]) -> DescribedGroup:
    """The group and its members, as far as its topics exist."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.subscriptions.preferred_assignor(assignors),
        members=tuple(
            _described(member, group.target_of(member), topics) for member in group.members.values()
        ),
    )


def list_groups(groups: Iterable[ConsumerGroup], request: ListGroupsRequest) -> Iterator[ListedGroup]:
    """The groups that pass the request's filters; see `describe.list_groups` of classic groups."""
    states = {state.strip().lower() for state in request.states_filter}
    types = {type_.lower() for type_ in request.types_filter}
    if types and TYPE not in types:
        return
    for group in groups:
        if not states or group.state.lower() in states:
            yield ListedGroup(
                group_id=group.group_id,
                protocol_type=CONSUMER,
                group_state=group.state,
                group_type=TYPE,
            )


def _described(member: Member, target: Partitions, topics: Topics) -> DescribedMember:
    """A member; its partitions are also those that it is still to give up (KAFKA-20431)."""
    return DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=in_order(member.topic_names),
        subscribed_topic_regex=member.regex,
        assignment=_named(without_epochs(joined(member.assigned, member.revoking)), topics),
        target_assignment=_named(target, topics),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _named(partitions: Partitions, topics: Topics) -> Assignment:
    found = []
    for topic_id, of_topic in partitions.items():
        topic = topics.with_id(topic_id)
        if topic is not None:
            found.append(
                TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=tuple(sorted(of_topic)))
            )
    return Assignment(topic_partitions=tuple(found))
