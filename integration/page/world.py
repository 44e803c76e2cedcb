"""The page's world in its tests: groups that rebalance step by step, by their clients' requests."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from integration.support.awaiting import wait_until
from integration.support.server import Server
from kshim.testing.cluster import Cluster
from kshim.testing.records import NewRecord
from kshim.testing.wire import Wire, api_key_of, framed
from schemas.api_key import ApiKey
from schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.delete_groups import DeleteGroupsRequest
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.leave_group import LeaveGroupRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

SESSION_MS = 1_800_000
"""Members send no heartbeats, and must not expire on a slow machine."""
JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION, COMMIT_VERSION = 3, 2, 1, 1, 6


class Consumer:
    """A member of a group. `send_join` parks a JoinGroup; `joined` reads its answer."""

    def __init__(self, server: Server, group_id: str, client_id: str, software: str = "") -> None:
        self.group_id, self.client_id = group_id, client_id
        self.member_id, self.generation = "", -1
        self._wire = Wire(server.host, server.port, timeout_s=20)
        if software:
            name, _, version = software.partition(" ")
            self._ask(3, ApiVersionsRequest(client_software_name=name, client_software_version=version))

    def _send(self, version: int, request: Any) -> None:
        self._wire.sendall(framed(version, request, self.client_id))

    def _ask(self, version: int, request: Any) -> Any:
        self._send(version, request)
        return self._wire.response(version, api_key_of(request))

    def send_join(self, topic: str) -> None:
        subscription = encode_subscription(ConsumerProtocolSubscription(topics=(topic,)), 0)
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=subscription),),
        )
        self._send(JOIN_VERSION, request)

    def joined(self) -> bool:
        """Take the answer to JoinGroup. Return True if the member leads."""
        answer = self._wire.response(JOIN_VERSION, ApiKey.JOIN_GROUP)
        assert answer.error_code == 0, answer
        self.member_id, self.generation = answer.member_id, answer.generation_id
        return bool(answer.leader == answer.member_id)

    def send_sync(self, assignments: Mapping[str, Mapping[str, Sequence[int]]]) -> None:
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=member_id, assignment=_assignment(assigned))
                for member_id, assigned in assignments.items()
            ),
        )
        self._send(SYNC_VERSION, request)

    def synced(self) -> None:
        answer = self._wire.response(SYNC_VERSION, ApiKey.SYNC_GROUP)
        assert answer.error_code == 0, answer

    def is_told(self) -> bool:
        """Send a heartbeat; whether its answer says that the group rebalances."""
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=self.member_id
        )
        return bool(self._ask(HEARTBEAT_VERSION, request).error_code == ErrorCode.REBALANCE_IN_PROGRESS)

    def leave(self) -> None:
        self._ask(LEAVE_VERSION, LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id))

    def commit(self, topic: str, offsets: Mapping[int, int]) -> None:
        partitions = tuple(
            OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
            for partition, offset in offsets.items()
        )
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=(OffsetCommitRequestTopic(name=topic, partitions=partitions),),
        )
        answer = self._ask(COMMIT_VERSION, request)
        assert not any(partition.error_code for partition in answer.topics[0].partitions), answer

    def close(self) -> None:
        self._wire.close()


def _assignment(assigned: Mapping[str, Sequence[int]]) -> bytes:
    partitions = tuple(TopicPartition(topic=topic, partitions=tuple(p)) for topic, p in assigned.items())
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=partitions), 0)


def rebalance(consumers: Sequence[Consumer], topic: str, partitions: int) -> None:
    """Have all members join, and deal them the partitions in turn."""
    for consumer in sorted(consumers, key=lambda consumer: consumer.member_id):  # who is new sets it off
        if consumer.member_id:
            wait_until(consumer.is_told, 10, f"{consumer.client_id} is told of the rebalance")
        consumer.send_join(topic)
    leaders = [consumer for consumer in consumers if consumer.joined()]
    assign(leaders[0], consumers, topic, partitions)


def assign(leader: Consumer, consumers: Sequence[Consumer], topic: str, partitions: int) -> None:
    """Send the leader's SyncGroup with the assignment, then the others'."""
    assignments: dict[str, dict[str, list[int]]] = {each.member_id: {topic: []} for each in consumers}
    for partition, consumer in zip(range(partitions), itertools.cycle(consumers)):
        assignments[consumer.member_id][topic].append(partition)
    for consumer in consumers:
        consumer.send_sync(assignments if consumer is leader else {})
    for consumer in consumers:
        consumer.synced()


class World:
    """A server with some groups: `checkout`, which rebalances at its fourth member, and `billing`."""

    def __init__(self, server: Server) -> None:
        self.server = server
        wait_until(lambda: len(server.stdout) > 1, 10, "the line that names the page")
        self.http = f"http://{server.stdout[1].split()[2]}"
        self._consumers: list[Consumer] = []
        self.kafka = Cluster(server.bootstrap)
        self.kafka.create_topic("orders", 6)
        self.kafka.create_topic("payments", 2)
        for partition in range(6):
            self.produce("orders", 200 + 37 * partition, partition)
        self.checkout = [
            self.consumer("checkout", f"checkout-{number}", "apache-kafka-java 4.2.0") for number in (1, 2, 3)
        ]
        first, second, third = self.checkout
        for members in ([first], [first, second], self.checkout):
            rebalance(members, "orders", 6)
        second.leave()
        rebalance([first, third], "orders", 6)
        first.commit("orders", {0: 150, 2: 80, 4: 3})
        third.commit("orders", {1: 20, 3: 10, 5: 0})
        self.billing = self.consumer("billing", "billing-1", "librdkafka 2.16.1")
        rebalance([self.billing], "payments", 2)
        self.billing.commit("payments", {0: 0})

    def consumer(self, group_id: str, client_id: str, software: str = "") -> Consumer:
        """A new client of a group."""
        consumer = Consumer(self.server, group_id, client_id, software)
        self._consumers.append(consumer)
        return consumer

    def produce(self, topic: str, count: int, partition: int = 0) -> None:
        """Append some records to one partition."""
        self.kafka.produce(topic, [NewRecord(b"x", partition=partition) for _ in range(count)])

    def delete_group(self, group_id: str) -> None:
        """Delete a group without members."""
        wire = Wire(self.server.host, self.server.port)
        (answer,) = wire.ask(2, DeleteGroupsRequest(groups_names=(group_id,))).results
        assert answer.error_code == ErrorCode.NONE, answer
        wire.close()

    def close(self) -> None:
        for consumer in self._consumers:
            consumer.close()
