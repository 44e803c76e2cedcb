"""A world in which classic members ask, too."""

from __future__ import annotations

from typing import Any

from schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from schemas.error_code import ErrorCode
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.coordination.groups.consumer.world import G, World

NONE, REBALANCING = ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS


def subscription(*topics: str, version: int = 1, **has: Any) -> bytes:
    parts = tuple(TopicPartition(topic=name, partitions=tuple(those)) for name, those in has.items())
    return encode_subscription(ConsumerProtocolSubscription(topics=topics, owned_partitions=parts), version)


def assignment(user_data: bytes | None = None, **has: Any) -> bytes:
    parts = tuple(TopicPartition(topic=name, partitions=tuple(those)) for name, those in has.items())
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=parts, user_data=user_data), 1)


def had(data: bytes) -> dict[str, set[int]]:
    return {each.topic: set(each.partitions) for each in decode_assignment(data).assigned_partitions}


class Mixed(World):
    """A world in which classic members ask, too. `answers` has all answers by token."""

    def __init__(self, **settings: Any) -> None:
        self.answers: dict[int, Any] = {}
        super().__init__(**{"group_initial_rebalance_delay_ms": 0} | settings)

    def _note(self, decision: Any) -> None:
        for reply in decision.replies:
            self.answers[reply.token] = reply.response
        super()._note(decision)

    def join_classic(
        self, member_id: str = "", *, version: int = 3, instance_id: str | None = None, **more: Any
    ) -> int:
        """Send a JoinGroup, and return its token."""
        given: dict[str, Any] = {
            "protocol_type": "consumer",
            "protocols": (JoinGroupRequestProtocol(name="range", metadata=subscription("foo")),),
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 20_000,
        }
        request = JoinGroupRequest(
            group_id=G, member_id=member_id, group_instance_id=instance_id, **given | more
        )
        self.ask(request, version)
        return self._tokens

    def sync_classic(
        self,
        member_id: str,
        generation: int,
        assigned: dict[str, bytes] | None = None,
        version: int = 5,
        **more: Any,
    ) -> Any:
        protocol = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
        assignments = tuple(
            SyncGroupRequestAssignment(member_id=each, assignment=data)
            for each, data in (assigned or {}).items()
        )
        request = SyncGroupRequest(
            group_id=G,
            member_id=member_id,
            generation_id=generation,
            assignments=assignments,
            **protocol | more,
        )
        return self.ask(request, version)

    def beat_classic(self, member_id: str, generation: int) -> ErrorCode:
        request = HeartbeatRequest(group_id=G, member_id=member_id, generation_id=generation)
        return ErrorCode(self.ask(request, 4).error_code)

    def classic(self, instance_id: str | None = None, assigned: bytes | None = None, **more: Any) -> str:
        """Make a stable classic group of one member, and return its id."""
        token = self.join_classic(instance_id=instance_id, **more)
        self.advance(3_000)
        answer = self.answers[token]
        assert (answer.error_code, answer.generation_id) == (0, 1)
        data = assignment(foo=range(6)) if assigned is None else assigned
        assert self.sync_classic(answer.member_id, 1, {answer.member_id: data}).error_code == 0
        return str(answer.member_id)

    @property
    def classic_groups(self) -> Any:
        return self.coordinator._shards[0].groups
