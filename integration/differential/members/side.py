"""One of the two servers: asks it, and says its answers in words that do not differ from server to server."""

from __future__ import annotations

import socket
from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from integration.differential.playing.asking import Address
from kshim.testing.wire import api_key_of, payload, sized
from schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from schemas.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from schemas.messages.delete_groups import DeleteGroupsRequest
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from schemas.registry import decode_response

TIMEOUT_S = 30
Partitions = Mapping[str, Collection[int]]
Said = tuple[Any, ...]


class Side:
    """A connection to one server, and what its clients remember."""

    def __init__(self, address: Address, topic_ids: Mapping[str, UUID]) -> None:
        self._socket = socket.create_connection((address.host, address.port), TIMEOUT_S)
        self._ids = topic_ids
        self._names = {topic_id: name for name, topic_id in topic_ids.items()}
        self.member_ids: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self.owned: dict[str, Partitions] = {}

    def close(self) -> None:
        self._socket.close()

    def ask(self, version: int, request: Any) -> Any:
        self._socket.sendall(sized(payload(version, request)))
        frame = self._read(int.from_bytes(self._read(4)))
        return decode_response(api_key_of(request), version, frame)[1]

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            assert part, "the connection is closed"
            data += part
        return data

    def heartbeat(self, owned: Partitions | None, **fields: Any) -> Said:
        """Send a heartbeat of a consumer member."""
        said = owned and tuple(
            TopicPartitions(topic_id=self._ids[topic], partitions=tuple(those))
            for topic, those in owned.items()
        )
        given = None if owned is None else said or ()
        answer = self.ask(1, ConsumerGroupHeartbeatRequest(topic_partitions=given, **fields))
        has = answer.assignment and sorted(
            (self._names[each.topic_id], sorted(each.partitions))
            for each in answer.assignment.topic_partitions
        )
        return answer.error_code, answer.error_message, answer.member_epoch, answer.heartbeat_interval_ms, has

    def commit(self, topic: str, index: int, offset: int, **fields: Any) -> Said:
        """Commit one offset."""
        partition = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        topics = (OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)
        answer = self.ask(9, OffsetCommitRequest(topics=topics, **fields))
        return (answer.topics[0].partitions[0].error_code,)

    def fetch(self, topic: str, index: int, **fields: Any) -> Said:
        """Fetch one offset."""
        topics = (OffsetFetchRequestTopics(name=topic, partition_indexes=(index,)),)
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(topics=topics, **fields),))
        (answer,) = self.ask(9, request).groups
        offsets = [each.committed_offset for found in answer.topics for each in found.partitions]
        return answer.error_code, offsets

    def describe(self, group_id: str) -> Said:
        """The group as both APIs describe it."""
        (consumer,) = self.ask(1, ConsumerGroupDescribeRequest(group_ids=(group_id,))).groups
        (classic,) = self.ask(6, DescribeGroupsRequest(groups=(group_id,))).groups
        names = {member_id: name for name, member_id in self.member_ids.items()}
        members = (
            (
                names.get(each.member_id, each.member_id),
                each.member_type,
                each.instance_id,
                each.member_epoch,
                sorted(each.subscribed_topic_names),
                each.subscribed_topic_regex,
                _partitions(each.assignment),
                _partitions(each.target_assignment),
            )
            for each in consumer.members
        )
        return (
            (consumer.error_code, consumer.group_state, consumer.group_epoch, consumer.assignment_epoch),
            sorted(members, key=repr),
            (classic.error_code, classic.group_state, classic.protocol_data, len(classic.members)),
        )

    def listed(self, group_id: str, states: tuple[str, ...], types: tuple[str, ...]) -> Said:
        """The group in a list, if it passes the filters."""
        answer = self.ask(5, ListGroupsRequest(states_filter=states, types_filter=types))
        return tuple(
            (each.protocol_type, each.group_state, each.group_type)
            for each in answer.groups
            if each.group_id == group_id
        )

    def delete(self, group_id: str) -> Said:
        """Delete the group, if it is empty."""
        (answer,) = self.ask(2, DeleteGroupsRequest(groups_names=(group_id,))).results
        return (answer.error_code,)

    def join(
        self, member: str, version: int, topics: Collection[str], owned: Partitions, **fields: Any
    ) -> Said:
        """Send the JoinGroup of a classic member."""
        parts = tuple(TopicPartition(topic=name, partitions=tuple(those)) for name, those in owned.items())
        subscription = ConsumerProtocolSubscription(topics=tuple(topics), owned_partitions=parts)
        metadata = encode_subscription(subscription, 1)
        request = JoinGroupRequest(
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            member_id=self.member_ids.get(member, ""),
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=metadata),),
            **fields,
        )
        answer = self.ask(version, request)
        if not answer.error_code:
            self.member_ids[member], self.generations[member] = answer.member_id, answer.generation_id
        return answer.error_code, answer.generation_id, answer.protocol_name, len(answer.members)

    def sync(self, member: str, assigned: Partitions | None, late: int = 0, **fields: Any) -> Said:
        """Send the SyncGroup of a classic member. late: by how much its generation is wrong."""
        assignments: tuple[SyncGroupRequestAssignment, ...] = ()
        if assigned is not None:
            parts = tuple(
                TopicPartition(topic=name, partitions=tuple(those)) for name, those in assigned.items()
            )
            data = encode_assignment(ConsumerProtocolAssignment(assigned_partitions=parts), 1)
            assignments = (SyncGroupRequestAssignment(member_id=self.member_ids[member], assignment=data),)
        answer = self.ask(
            5,
            SyncGroupRequest(
                generation_id=self.generations.get(member, 1) + late,
                member_id=self.member_ids.get(member, "nobody"),
                protocol_type="consumer",
                protocol_name="range",
                assignments=assignments,
                **fields,
            ),
        )
        has = decode_assignment(answer.assignment).assigned_partitions if answer.assignment else ()
        found = {each.topic: sorted(each.partitions) for each in has}
        if not answer.error_code:
            self.owned[member] = found
        return answer.error_code, sorted(found.items())

    def beat(self, member: str, late: int = 0, **fields: Any) -> Said:
        """Send the Heartbeat of a classic member."""
        request = HeartbeatRequest(
            generation_id=self.generations.get(member, 1) + late,
            member_id=self.member_ids.get(member, "nobody"),
            **fields,
        )
        return (self.ask(4, request).error_code,)


def _partitions(assignment: Any) -> list[tuple[str, list[int]]]:
    return sorted((each.topic_name, sorted(each.partitions)) for each in assignment.topic_partitions)
