"""Lists, describes and changes consumer groups: their members and their committed offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kshim.client.cluster import Cluster, Retry, retry_or_check
from kshim.client.faults import ClientError, check, did_you_mean
from schemas.api_key import ApiKey
from schemas.consumer_protocol import decode_assignment, partitions_of
from schemas.error_code import ErrorCode
from schemas.message import MalformedMessage
from schemas.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from schemas.messages.delete_groups import DeleteGroupsRequest
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

TopicPartition = tuple[str, int]

CONSUMER: Final = "consumer"
"""The type of groups of KIP-848."""
DEAD: Final = "Dead"
MOST_NAMED: Final = 5
"""Most members that an error names."""
_GROUPS_SINCE: Final = 8
"""The version of OffsetFetch from which on it asks about groups, not about one group."""
_MEMBERS_SINCE: Final = 3
_ABSENT: Final = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)


class NoGroup(ClientError):
    """A group does not exist."""


class Member(NamedTuple):
    """A member of a group."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: Sequence[TopicPartition]


class Group(NamedTuple):
    """A group. `coordinator` is a node id."""

    group_id: str
    state: str
    protocol: str
    coordinator: int
    members: Sequence[Member]


class Listed(NamedTuple):
    """A group as ListGroups shows it."""

    group_id: str
    group_type: str
    """Empty if the broker does not say."""
    protocol_type: str
    coordinator: int


def listed(cluster: Cluster) -> list[Listed]:
    """All groups, by id. Raises ClientError."""

    def ask() -> list[Listed]:
        cluster.describe(())
        found = []
        for node_id in sorted(cluster.brokers):
            answered = cluster.ask(cluster.node(node_id), ListGroupsRequest())
            retry_or_check(f"groups of broker {node_id}", answered.error_code)
            found += [Listed(g.group_id, g.group_type, g.protocol_type, node_id) for g in answered.groups]
        return sorted(found)

    return cluster.until_done(ask)


def described(cluster: Cluster, group_id: str) -> Group:
    """Describe a group. Raises ClientError if it does not exist, with the ids that are most like it."""

    def ask() -> Group:
        connection = cluster.coordinator(group_id)
        coordinator = next(
            (each.node_id for each in cluster.brokers.values() if each.address == connection.address), -1
        )
        if connection.serves(ApiKey.CONSUMER_GROUP_DESCRIBE):
            request = ConsumerGroupDescribeRequest(group_ids=(group_id,))
            (found,) = cluster.ask(connection, request).groups
            if found.error_code not in _ABSENT:
                retry_or_check(f"group {group_id}", found.error_code, found.error_message)
                return _of_consumers(found, coordinator)
        (found,) = cluster.ask(connection, DescribeGroupsRequest(groups=(group_id,))).groups
        if found.error_code in _ABSENT or found.group_state == DEAD:
            raise _no_group(cluster, group_id)
        retry_or_check(f"group {group_id}", found.error_code, found.error_message)
        return _classic(found, coordinator)

    return cluster.until_done(ask)


def committed(cluster: Cluster, group_id: str) -> dict[TopicPartition, int]:
    """The committed offsets of a group. Raises ClientError."""

    def ask() -> dict[TopicPartition, int]:
        connection = cluster.coordinator(group_id)
        if connection.version(ApiKey.OFFSET_FETCH) >= _GROUPS_SINCE:
            wanted = OffsetFetchRequestGroup(group_id=group_id, topics=None)
            (found,) = cluster.ask(connection, OffsetFetchRequest(groups=(wanted,))).groups
        else:
            found = cluster.ask(connection, OffsetFetchRequest(group_id=group_id, topics=None))
        retry_or_check(f"offsets of group {group_id}", found.error_code)
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in found.topics
            for each in topic.partitions
            if each.error_code == ErrorCode.NONE and each.committed_offset >= 0
        }

    return cluster.until_done(ask)


def commit(
    cluster: Cluster,
    group_id: str,
    offsets: Mapping[TopicPartition, int],
    *,
    member_id: str = "",
    generation: int = -1,
) -> None:
    """Commit offsets, as a member or, without a member id, as an administrator. Raises ClientError."""
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        each = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        by_topic.setdefault(topic, []).append(each)
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=tuple(
            OffsetCommitRequestTopic(name=topic, partitions=tuple(some)) for topic, some in by_topic.items()
        ),
    )

    def ask() -> None:
        for topic in cluster.ask(cluster.coordinator(group_id), request).topics:
            for each in topic.partitions:
                retry_or_check(f"group {group_id}: {topic.name}-{each.partition_index}", each.error_code)

    cluster.until_done(ask)


def delete(cluster: Cluster, group_id: str) -> None:
    """Delete a group without members, and its offsets. Raises ClientError."""

    def ask() -> None:
        connection = cluster.coordinator(group_id)
        (found,) = cluster.ask(connection, DeleteGroupsRequest(groups_names=(group_id,))).results
        if found.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            raise _no_group(cluster, group_id)
        retry_or_check(f"group {group_id}", found.error_code, found.error_message)

    cluster.until_done(ask)


def remove(cluster: Cluster, group_id: str, members: Iterable[Member], reason: str) -> None:
    """Remove members from a group, as Kafka's admin client does. Raises ClientError."""
    identities = tuple(
        MemberIdentity(member_id=each.member_id, group_instance_id=each.instance_id, reason=reason)
        for each in members
    )

    def ask() -> None:
        connection = cluster.coordinator(group_id)
        if connection.version(ApiKey.LEAVE_GROUP) < _MEMBERS_SINCE:
            raise ClientError(f"{connection} is too old: it removes no other members of a group")
        found = cluster.ask(connection, LeaveGroupRequest(group_id=group_id, members=identities))
        retry_or_check(f"group {group_id}", found.error_code)
        for each in found.members:
            if each.error_code != ErrorCode.UNKNOWN_MEMBER_ID:  # it has left meanwhile
                check(f"group {group_id}: {each.member_id}", each.error_code)

    cluster.until_done(ask)


def check_empty(cluster: Cluster, group_id: str, otherwise: str) -> None:
    """Raise ClientError if a group has members. A group that does not exist has none.

    otherwise: a clause that says what is not done then.
    """
    try:
        members = described(cluster, group_id).members
    except NoGroup:
        return
    if members:
        ids = ", ".join(each.member_id for each in members[:MOST_NAMED])
        raise ClientError(f"group {group_id} has {len(members)} member(s), {ids}: {otherwise}")


def _no_group(cluster: Cluster, group_id: str) -> NoGroup:
    try:
        known = [each.group_id for each in listed(cluster)]
    except (ClientError, Retry):
        known = []
    return NoGroup(f"no group {group_id}{did_you_mean(group_id, known)}")


def _classic(found: Any, coordinator: int) -> Group:
    members = [
        Member(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host.lstrip("/"),
            _assigned(each.member_assignment),
        )
        for each in found.members
    ]
    return Group(found.group_id, found.group_state, found.protocol_data, coordinator, members)


def _of_consumers(found: Any, coordinator: int) -> Group:
    members = [
        Member(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host.lstrip("/"),
            sorted(
                (some.topic_name, n) for some in each.assignment.topic_partitions for n in some.partitions
            ),
        )
        for each in found.members
    ]
    return Group(found.group_id, found.group_state, found.assignor_name, coordinator, members)


def _assigned(data: bytes) -> Sequence[TopicPartition]:
    """The partitions in a member's assignment; none if it is not a consumer's."""
    try:
        return sorted(partitions_of(decode_assignment(data).assigned_partitions))
    except MalformedMessage:
        return ()
