"""Members of consumer groups in front of an upstream that has two topics."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from schemas.api_key import ApiKey
from schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from schemas.registry import decode_response
from tests.api.harness import PENDING, advance, later, result
from tests.upstream.front_world import World

A, B = UUID(int=10), UUID(int=11)
G = "g"
ALARM_S = 0.005
"""How much later than due a coordinator's timers may go off."""
STALE_S = 1.0
"""After this long kshim asks again for the topics that a request names."""


class Members(World):
    """The upstream has topic "a" with 3 partitions, and "b" with 2."""

    def __init__(self, before: World | None = None) -> None:
        super().__init__(before=before, group_initial_rebalance_delay_ms=0)
        if before is None:
            self.upstream_topics |= {"a": A, "b": B}
            self.partitions |= {"a": 3, "b": 2}

    def successor(self) -> Members:
        """Another process, which knows no topic, before it leads the shards of this one."""
        self.pass_s(0)
        self.groups.stop()
        successor = Members(self)
        successor.pass_s(self.here.clock.seconds() - successor.here.clock.seconds())
        return successor

    def pass_s(self, for_s: float) -> None:
        advance(self.here, for_s * 1000)
        for _ in range(20):
            advance(self.here)

    def request(self, key: ApiKey, version: int, request: Any) -> Any:
        """The response to a request that kshim answers within some turns of the reactor."""
        answer = later(self.send(key, version, request))
        self.pass_s(ALARM_S)
        reply = result(answer)
        assert reply is not PENDING
        return decode_response(key, version, bytes(reply))[1]

    def beat(self, member_id: str, epoch: int, *names: str, **fields: Any) -> Any:
        """The answer to a heartbeat. names: the topics to which the member subscribes."""
        joins: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "topic_partitions": ()} if names else {}
        asked = {"group_id": G, "subscribed_topic_names": names or None} | joins | fields
        request = ConsumerGroupHeartbeatRequest(member_id=member_id, member_epoch=epoch, **asked)
        return self.request(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)

    def join(self, member_id: str, *names: str) -> dict[UUID, tuple[int, ...]]:
        """A member's partitions after it has joined."""
        return had(self.beat(member_id, 0, *names))

    def describe(self) -> Any:
        request = ConsumerGroupDescribeRequest(group_ids=(G,))
        return self.request(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, request).groups[0]

    def join_classic(self, member_id: str, *names: str, owned: tuple[TopicPartition, ...] = ()) -> Any:
        subscription = ConsumerProtocolSubscription(topics=names, owned_partitions=owned)
        metadata = encode_subscription(subscription, 1)
        request = JoinGroupRequest(
            group_id=G,
            member_id=member_id,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=metadata),),
        )
        return self.request(ApiKey.JOIN_GROUP, 3, request)

    def sync(self, member_id: str, generation: int, *parts: TopicPartition) -> list[TopicPartition]:
        given = encode_assignment(ConsumerProtocolAssignment(assigned_partitions=parts), 1)
        request = SyncGroupRequest(
            group_id=G,
            member_id=member_id,
            generation_id=generation,
            assignments=(SyncGroupRequestAssignment(member_id=member_id, assignment=given),) if parts else (),
        )
        answered = self.request(ApiKey.SYNC_GROUP, 3, request)
        assert answered.error_code == ErrorCode.NONE
        return list(decode_assignment(answered.assignment).assigned_partitions)


def had(answer: Any) -> dict[UUID, tuple[int, ...]]:
    assert answer.error_code == ErrorCode.NONE, answer
    return {each.topic_id: each.partitions for each in answer.assignment.topic_partitions}
