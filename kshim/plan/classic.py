"""The model of a member of a classic group: eager or cooperative, dynamic or static.

It follows kafka-clients, kafka-python and librdkafka. They differ in when they send the first heartbeat of a
generation, which is when a member hears of a rebalance that followed at once: librdkafka an interval after
its last one, a new member at once; the others an interval after they have their assignment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from kshim.coordination.groups.refusals import WaitingHeartbeat
from kshim.plan.assignors import SHARES
from kshim.plan.broker import GROUP, TOPIC
from kshim.plan.member import Process, World
from kshim.plan.setting import BrokerKind, ClientKind, Protocol, Setting
from schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from schemas.error_code import ErrorCode
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION = 9, 5, 4, 5
IS_WAITED_FOR: Final = frozenset({ClientKind.JAVA, ClientKind.LIBRDKAFKA})
"""Clients whose heartbeats wait at kshim. kafka-python 2 does not name itself where it sends them."""
GOES_ON_BEATING: Final = frozenset({ClientKind.LIBRDKAFKA})
"""Clients whose intervals between heartbeats go on through a rebalance. If a heartbeat is not answered when
the next one is due, they leave that one out.
"""
JOINS_EVERY_MS: Final = {ClientKind.JAVA: 0, ClientKind.PYTHON: 0, ClientKind.LIBRDKAFKA: 1_000}
"""How long after its last JoinGroup a member that hears of a rebalance may join again, in ms."""
GIVES_UP_MS: Final = {ClientKind.JAVA: 0, ClientKind.PYTHON: 0, ClientKind.LIBRDKAFKA: 5}
"""How long a client takes to give partitions up, in ms, before it joins again. With librdkafka two threads
take part in it.
"""
FIRST_BEAT_WITHIN_MS: Final = 6
"""Within which time a new member of librdkafka sends its first heartbeat, in ms. Mostly it comes before
others have given partitions up: measured in 31 of 42 cases.
"""
LATE_MS: Final = {ClientKind.JAVA: 5, ClientKind.PYTHON: 2, ClientKind.LIBRDKAFKA: 60}
"""By how much a heartbeat may come after its interval, in ms. So the heartbeats of members, which begin
together after a rebalance, come apart.
"""


class ClassicMember(Process):
    """One process with one classic consumer."""

    def __init__(
        self, world: World, setting: Setting, name: str, instance_id: str | None, partitions: int
    ) -> None:
        super().__init__(world, setting, name, instance_id)
        self._partitions = partitions
        self._is_cooperative = setting.protocol is Protocol.COOPERATIVE
        self._member_id, self._generation = "", -1
        self._plan: tuple[SyncGroupRequestAssignment, ...] = ()
        self._beats_ms = 0
        """When the next heartbeat is due by the one before; 0 before the first."""
        self._joined_ms = -JOINS_EVERY_MS[setting.client]
        """When it sent its last JoinGroup."""
        self._beat_waits = False
        """True while a heartbeat is not answered."""

    def begin(self) -> None:
        self._join()

    def leave(self) -> None:
        """Static members do not say that they leave, as they will come back."""
        if self.instance_id is None and self._member_id:
            identity = MemberIdentity(member_id=self._member_id, group_instance_id=None)
            self.say(LEAVE_VERSION, LeaveGroupRequest(group_id=GROUP, members=(identity,)))

    def _join(self) -> None:
        """Join, or join again. An eager member gives up all partitions before it does."""
        self.stop("heartbeat")
        self._joined_ms = self.now_ms
        if not self._is_cooperative:
            self.lose(self.owned)
        protocol = JoinGroupRequestProtocol(
            name=self.setting.chosen_assignor, metadata=_subscription(self.owned, self._generation)
        )
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=self.setting.session_ms,
            rebalance_timeout_ms=self.setting.rebalance_ms,
            member_id=self._member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=(protocol,),
        )
        self.ask(JOIN_VERSION, request, self._joined)

    def _joined(self, answer: JoinGroupResponse) -> None:
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            self._join()
        elif answer.error_code != ErrorCode.NONE:
            self._refused(answer.error_code)
        else:
            self._member_id, self._generation = answer.member_id, answer.generation_id
            leads = answer.leader == answer.member_id and not answer.skip_assignment
            self._plan = self._assigned_by(answer) if leads else ()
            request = SyncGroupRequest(
                group_id=GROUP,
                generation_id=self._generation,
                member_id=self._member_id,
                group_instance_id=self.instance_id,
                protocol_type="consumer",
                protocol_name=answer.protocol_name,
                assignments=self._plan,
            )
            self.ask(SYNC_VERSION, request, self._synced)

    def _synced(self, answer: SyncGroupResponse) -> None:
        if answer.error_code != ErrorCode.NONE:
            self._refused(answer.error_code)
            return
        has = _partitions(answer.assignment)
        gives_up = self.owned - has
        self.lose(gives_up)
        self.gain(has - self.owned)
        if gives_up:
            self.call("poll", GIVES_UP_MS[self.setting.client], self._join)  # so that others get it
            return
        self.call("heartbeat", self._first_beat_ms(), self._beat)

    def _first_beat_ms(self) -> int:
        """How long after its assignment it sends the first heartbeat of a generation."""
        if self.setting.client not in GOES_ON_BEATING:
            return self.setting.interval_ms
        if not self._beats_ms:
            return self.world.chance.randint(0, FIRST_BEAT_WITHIN_MS)
        return self._beats_ms - self.now_ms

    def _beat(self) -> None:
        goes_on = self.setting.client in GOES_ON_BEATING
        self._beats_ms = self.now_ms + self.setting.interval_ms
        self._beats_ms += self.world.chance.randint(0, LATE_MS[self.setting.client])
        self.call("heartbeat", self._beats_ms - self.now_ms, self._beat)
        if self._beat_waits and goes_on:
            return
        self._beat_waits = True
        request: Any = HeartbeatRequest(
            group_id=GROUP,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self.instance_id,
        )
        if self.setting.broker is BrokerKind.KSHIM and self.setting.client in IS_WAITED_FOR:
            request = WaitingHeartbeat(request)
        generation = self._generation
        self.ask(HEARTBEAT_VERSION, request, lambda answer: self._heard(generation, answer))

    def _heard(self, generation: int, answer: HeartbeatResponse) -> None:
        self._beat_waits = False
        if (
            answer.error_code != ErrorCode.NONE
            and generation == self._generation
            and "heartbeat" in self._calls
        ):
            self._refused(answer.error_code)

    def _refused(self, error: int) -> None:
        """Join again at the next poll."""
        if error == ErrorCode.FENCED_INSTANCE_ID:
            self.end()
            return
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self.lose(self.owned)
            self._generation = -1
            if error == ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""
        wait_ms = self._joined_ms + JOINS_EVERY_MS[self.setting.client] - self.now_ms
        if wait_ms > 0:
            self.call("poll", wait_ms, self._join)
        else:
            self.at_next_poll(self._join)

    def _assigned_by(self, answer: JoinGroupResponse) -> tuple[SyncGroupRequestAssignment, ...]:
        """The plan of the leader. Assignors know static members by their instance ids."""
        ids = {each.group_instance_id or each.member_id: each.member_id for each in answer.members}
        owned = {each.group_instance_id or each.member_id: _owned(each.metadata) for each in answer.members}
        shares = SHARES[self.setting.chosen_assignor](owned, self._partitions)
        return tuple(
            SyncGroupRequestAssignment(member_id=ids[key], assignment=_assignment(those))
            for key, those in shares.items()
        )


def _subscription(owned: Collection[int], generation: int) -> bytes:
    parts = (TopicPartition(topic=TOPIC, partitions=tuple(sorted(owned))),) if owned else ()
    return encode_subscription(
        ConsumerProtocolSubscription(topics=(TOPIC,), owned_partitions=parts, generation_id=generation)
    )


def _owned(subscription: bytes) -> tuple[int, ...]:
    return tuple(
        each for part in decode_subscription(subscription).owned_partitions for each in part.partitions
    )


def _assignment(partitions: Iterable[int]) -> bytes:
    parts = (TopicPartition(topic=TOPIC, partitions=tuple(partitions)),)
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=parts))


def _partitions(assignment: bytes) -> frozenset[int]:
    if not assignment:
        return frozenset()
    has = decode_assignment(assignment).assigned_partitions
    return frozenset(partition for part in has for partition in part.partitions)
