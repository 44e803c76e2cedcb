"""Consumer groups as a test sees them: their members, assignments and committed offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from kshim.testing.brokers import Again, Brokers, check
from schemas.consumer_protocol import decode_assignment, decode_topics
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from schemas.messages.consumer_group_describe import Member as DescribedMember
from schemas.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from schemas.messages.describe_groups import (
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from schemas.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from schemas.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

__all__ = [
    "Group",
    "Member",
    "TopicPartition",
    "describe_group",
    "forget_groups",
    "groups",
    "offsets",
]

CONSUMER = "consumer"
NO_OFFSET = -1
DEAD = "Dead"
GONE = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_MEMBER_ID})


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class Member(NamedTuple):
    """One member of a group. Its topics and partitions are known only while the group is Stable."""

    member_id: str
    client_id: str
    group_instance_id: str | None
    topics: frozenset[str]
    partitions: tuple[TopicPartition, ...]


class Group(NamedTuple):
    """A group at one moment."""

    group_id: str
    state: str
    """Kafka's name of the state: Dead, Empty, PreparingRebalance, CompletingRebalance or Stable; of a
    group of the consumer protocol (KIP-848) Dead, Empty, Assigning, Reconciling or Stable."""
    members: tuple[Member, ...]

    @property
    def assigned(self) -> list[TopicPartition]:
        """The partitions that members have, sorted. A partition that two members have is listed twice."""
        return sorted(partition for member in self.members for partition in member.partitions)

    def __str__(self) -> str:
        lines = [f"group {self.group_id} is {self.state} with {len(self.members)} member(s)"]
        return "\n  ".join([*lines, *map(_line, self.members)])


def _line(member: Member) -> str:
    static = f", group.instance.id {member.group_instance_id}" if member.group_instance_id else ""
    return f"{member.member_id} (client.id {member.client_id}{static}): {_listed(member.partitions)}"


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in partitions) or "no partition"


def describe_group(brokers: Brokers, group: str) -> Group:
    """Ask a group's coordinator to describe it. A group that does not exist is Dead. Raises Again, Refused,
    OSError.
    """
    node_id = brokers.coordinator(group)
    request = DescribeGroupsRequest(groups=(group,))
    (described,) = brokers.ask_node(node_id, request, DescribeGroupsResponse).groups
    check(f"group {group}", described.error_code)
    if described.group_state == DEAD and (found := _consumer_group(brokers, node_id, group)) is not None:
        return found
    is_consumer = described.protocol_type == CONSUMER
    members = (_member(member, is_consumer) for member in described.members)
    return Group(group, described.group_state, tuple(sorted(members)))


def _consumer_group(brokers: Brokers, node_id: int, group: str) -> Group | None:
    """The group, if it is one of the consumer protocol. Raises Again, Refused, OSError.

    A broker may not know the request, so it is sent only if there is such a group.
    """
    listed = brokers.ask_node(node_id, ListGroupsRequest(), ListGroupsResponse)
    check("list groups", listed.error_code)
    if group not in {each.group_id for each in listed.groups}:
        return None
    request = ConsumerGroupDescribeRequest(group_ids=(group,))
    (described,) = brokers.ask_node(node_id, request, ConsumerGroupDescribeResponse).groups
    if described.error_code in GONE:
        return None
    check(f"group {group}", described.error_code)
    return Group(group, described.group_state, tuple(sorted(map(_consumer_member, described.members))))


def _consumer_member(member: DescribedMember) -> Member:
    held = sorted(
        TopicPartition(of.topic_name, index)
        for of in member.assignment.topic_partitions
        for index in of.partitions
    )
    topics = frozenset((*member.subscribed_topic_names, *(each.topic for each in held)))
    return Member(member.member_id, member.client_id, member.instance_id, topics, tuple(held))


def _member(member: DescribedGroupMember, is_consumer: bool) -> Member:
    topics: Collection[str] = ()
    partitions: tuple[TopicPartition, ...] = ()
    if is_consumer and member.member_metadata:
        topics = decode_topics(member.member_metadata)
    if is_consumer and member.member_assignment:
        assignment = decode_assignment(member.member_assignment)
        partitions = tuple(
            sorted(
                TopicPartition(of.topic, index)
                for of in assignment.assigned_partitions
                for index in of.partitions
            )
        )
    return Member(
        member.member_id, member.client_id, member.group_instance_id or None, frozenset(topics), partitions
    )


def unassigned(brokers: Brokers, group: Group) -> list[TopicPartition]:
    """The partitions of subscribed topics that no member has. Raises OSError."""
    names = {topic for member in group.members for topic in member.topics}
    topics = brokers.topics(sorted(names)) if names else {}
    existing = {TopicPartition(topic.name, index) for topic in topics.values() for index in topic.leaders}
    return sorted(existing - set(group.assigned))


def check_stable(brokers: Brokers, group_id: str, members: int | None) -> Group:
    """Return the group if it is Stable, and its members have all partitions of the topics that they subscribe
    to, and at least one partition.

    members: how many the group must have; None for any number above 0. Raises Again with the group's state,
    Refused, OSError.
    """
    group = describe_group(brokers, group_id)
    if group.state != "Stable" or (members is not None and len(group.members) != members):
        raise Again(str(group))
    if without := unassigned(brokers, group):
        raise Again(f"{group}\n  nobody has {_listed(without)}")
    subscribed = {topic for member in group.members for topic in member.topics}
    if subscribed and not group.assigned:
        raise Again(f"{group}\n  there is no topic {', '.join(sorted(subscribed))}")
    return group


def offsets(brokers: Brokers, group: str) -> dict[TopicPartition, int]:
    """The group's committed offsets. Raises Again, Refused, OSError."""
    request = OffsetFetchRequest(group_id=group, topics=None)
    response = brokers.ask_node(brokers.coordinator(group), request, OffsetFetchResponse)
    check(f"offsets of group {group}", response.error_code)
    return {
        TopicPartition(topic.name, partition.partition_index): partition.committed_offset
        for topic in response.topics
        for partition in topic.partitions
        if partition.committed_offset != NO_OFFSET
    }


def lag(committed: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> int:
    """How many records the group has yet to commit. Without a committed offset, a partition counts from 0."""
    return sum(max(0, end - committed.get(partition, 0)) for partition, end in ends.items())


# ---- forgetting


def groups(brokers: Brokers) -> dict[str, int]:
    """The node id of each group's coordinator, by group id. Raises Again, Refused, OSError."""
    found: dict[str, int] = {}
    for node_id in brokers.node_ids():
        response = brokers.ask_node(node_id, ListGroupsRequest(), ListGroupsResponse)
        check("list groups", response.error_code)
        found |= dict.fromkeys((listed.group_id for listed in response.groups), node_id)
    return found


def forget_groups(brokers: Brokers, names: Mapping[str, int], removed: list[tuple[str, Member]]) -> None:
    """Delete groups with their offsets. names: each group's coordinator, by group id. removed: gets the
    members that had to leave their groups for that.

    Raises Again if a member has joined meanwhile, Refused, OSError.
    """
    for group, node_id in names.items():
        members = describe_group(brokers, group).members
        if members:
            leaving = tuple(
                MemberIdentity(member_id=m.member_id, group_instance_id=m.group_instance_id) for m in members
            )
            left = brokers.ask_node(
                node_id, LeaveGroupRequest(group_id=group, members=leaving), LeaveGroupResponse
            )
            check(f"remove the members of group {group}", left.error_code)
            removed += ((group, member) for member in members)
    for node_id in sorted(set(names.values())):
        mine = tuple(group for group, led_by in names.items() if led_by == node_id)
        request = DeleteGroupsRequest(groups_names=mine)
        for done in brokers.ask_node(node_id, request, DeleteGroupsResponse).results:
            if done.error_code == ErrorCode.NON_EMPTY_GROUP:
                raise Again(f"a member has joined group {done.group_id} again")
            if done.error_code not in GONE:
                check(f"delete group {done.group_id}", done.error_code)
