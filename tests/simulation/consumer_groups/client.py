"""Simulated members: of the consumer protocol, and classic ones, which are eager or cooperative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kshim.coordination.groups.consumer.member import GOES_AWAY, JOINS, LEAVES
from kshim.coordination.groups.consumer.requests import MemberHeartbeat, Patience
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
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.simulation.consumer_groups.checks import Partition
from tests.simulation.consumer_groups.world import GROUP, TOPICS, World

if TYPE_CHECKING:
    from collections.abc import Iterable

TIMEOUT_MS = 10_000
BACKOFF_MS = 100
REBALANCE_MS = 8_000
SESSION_OF_CLASSIC_MS = 6_000
FENCED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}
AGAIN = {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION}


@dataclass(frozen=True)
class Profile:
    """The configuration of a client."""

    is_classic: bool
    instance_id: str | None
    is_cooperative: bool
    patience: Patience


class Client:
    """One process. It has one request under way at a time."""

    def __init__(self, world: World, name: str, profile: Profile) -> None:
        self.world, self.name, self.profile = world, name, profile
        self.member_id = "" if profile.is_classic else name
        self.epoch = 0
        self.owned: frozenset[Partition] = frozenset()
        self.names: frozenset[str] = frozenset()
        self.regex: str | None = None
        self.is_alive = True
        self.stalled_until_ms = 0
        self._wake: Any = None
        self._token = 0
        self._asked = 0
        self._says_all = True
        """True if its next heartbeat says all: after a change, and when an answer may be lost."""
        self._waits = False
        self.awaits_sync = False
        """True for a classic member from its JoinGroup's answer to its SyncGroup's."""
        self.awaits_assignment = False
        """Like `awaits_sync`, but until a SyncGroup is not refused."""

    @property
    def is_joining(self) -> bool:
        """True for a classic member that has sent a JoinGroup, or is to."""
        return False

    def wake_in(self, delay_ms: int) -> None:
        if self._wake is not None:
            self._wake.cancel()
        self._wake = self.world.clock.after(delay_ms, self._act)

    def end(self) -> None:
        """It is gone, and says nothing."""
        self.world.note(self.name, "is gone")
        self.is_alive = False
        self.lose_answer()

    def lose_answer(self) -> None:
        """Its connection breaks: it does not know whether its request was carried out."""
        self._asked += 1
        self.world.forget(self._token)
        self._says_all = True
        if self.is_alive:
            self.wake_in(BACKOFF_MS)

    def says_more(self) -> None:
        """Another request follows on its connection."""
        self.world.release(self._token)

    def read(self, assignment: bytes) -> frozenset[Partition]:
        """The partitions in the assignment of a classic member, as far as their topics exist."""
        has = decode_assignment(assignment).assigned_partitions if assignment else ()
        topics = ((self.world.topics.named(each.topic), each.partitions) for each in has)
        return frozenset(
            (topic.topic_id, partition)
            for topic, partitions in topics
            if topic is not None
            for partition in partitions
        )

    def subscribe(self, names: Iterable[str], regex: str | None) -> None:
        self.names, self.regex = frozenset(names), regex
        self._says_all = True

    def _act(self) -> None:
        self._wake = None
        left_ms = self.stalled_until_ms - self.world.clock.now_ms
        if not self.is_alive:
            return
        if left_ms > 0:
            self.wake_in(left_ms)
        else:
            self.act()

    def act(self) -> None:
        raise NotImplementedError

    def _ask(self, version: int, request: Any, *, may_repeat: bool = True) -> None:
        self._asked += 1
        self._waits = True
        asked = self._asked

        def hear(answer: Any) -> None:
            self.world.clock.after(self.world.delay_ms(), self._hear, asked, answer)

        self.says_more()
        if may_repeat and self.world.chance.random() < 0.03:  # sent twice, because the first answer was lost
            self.world.counts["repeated"] += 1
            first = self.world.ask(version, self.name, request, lambda answer: None)
            self.world.release(first)
        self._token = self.world.ask(version, self.name, request, hear)
        self.wake_in(TIMEOUT_MS)

    def _hear(self, asked: int, answer: Any) -> None:
        left_ms = self.stalled_until_ms - self.world.clock.now_ms
        if not self.is_alive or asked != self._asked:
            return
        if left_ms > 0:
            self.world.clock.after(left_ms, self._hear, asked, answer)
            return
        self._asked += 1
        self._waits = False
        self.hear(answer)

    def hear(self, answer: Any) -> None:
        raise NotImplementedError

    def _fatal(self, error: int) -> None:
        self.world.counts[ErrorCode(error).name.lower()] += 1
        self.end()

    def _abandon(self) -> None:
        self.owned, self.epoch = frozenset(), JOINS


class ConsumerClient(Client):
    """A member of the consumer protocol."""

    def act(self) -> None:
        joins = self.epoch == JOINS
        says_all = joins or self._says_all or self._waits
        owned = () if joins else _by_topic(self.owned)
        self._says_all = False
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.profile.instance_id,
            rebalance_timeout_ms=REBALANCE_MS if says_all else -1,
            subscribed_topic_names=tuple(sorted(self.names)) if says_all else None,
            subscribed_topic_regex=(self.regex or "") if says_all else None,
            topic_partitions=owned if says_all or self.world.chance.random() < 0.5 else None,
        )
        self._ask(1, MemberHeartbeat(request, patience=self.profile.patience), may_repeat=says_all)

    def hear(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        error = answer.error_code
        if error in FENCED:
            self.world.counts["fenced"] += 1
            self._abandon()
            self.wake_in(BACKOFF_MS)
            return
        if error:
            assert "malformed" not in (answer.error_message or ""), answer
            self._fatal(error)
            return
        self.epoch = answer.member_epoch
        if answer.assignment is None:
            self.wake_in(answer.heartbeat_interval_ms)
            return
        has = frozenset(
            (each.topic_id, partition)
            for each in answer.assignment.topic_partitions
            for partition in each.partitions
        )
        if self.owned - has:
            delay_ms = self.world.chance.choice((0, 0, 50, 2_000))
            self.world.clock.after(delay_ms, self._give_up, self._asked, has)
            self.wake_in(answer.heartbeat_interval_ms)
            return
        self.owned = has
        self._says_all = True
        self.wake_in(0 if self.world.chance.random() < 0.5 else answer.heartbeat_interval_ms)

    def _give_up(self, asked: int, has: frozenset[Partition]) -> None:
        """It has given up what it is not to keep, and says so at once."""
        if self.is_alive and self._asked == asked and self.epoch > 0:
            self.owned = has
            self._says_all = True
            self.wake_in(0)
        elif self.is_alive and self.epoch > 0:
            self._says_all = True  # it asks again what it is to have

    def leave(self, *, goes_away: bool) -> None:
        epoch = GOES_AWAY if goes_away and self.profile.instance_id is not None else LEAVES
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.profile.instance_id,
        )
        self.end()
        self.world.ask(1, self.name, MemberHeartbeat(request), lambda answer: None)


class ClassicClient(Client):
    """A classic member: eager, or cooperative as long as the server assigns."""

    def __init__(self, world: World, name: str, profile: Profile) -> None:
        super().__init__(world, name, profile)
        self._joins = True
        self._is_assigned = False
        self._named = self.names
        self.planned_for: dict[str, int] | None = None
        """The topics as the plan for its generation sees them, if it is the leader: how many partitions each
        has.
        """
        self.follows = False
        """True if it knows another member as the leader."""
        self._plan: tuple[SyncGroupRequestAssignment, ...] = ()

    @property
    def is_joining(self) -> bool:
        return self._joins

    def lose_answer(self) -> None:
        self._joins = self._joins or self.awaits_sync
        super().lose_answer()

    def subscribe(self, names: Iterable[str], regex: str | None) -> None:
        super().subscribe(sorted(names) or TOPICS[:1], None)
        self._joins = True

    def act(self) -> None:
        ids: dict[str, Any] = {
            "group_id": GROUP,
            "member_id": self.member_id,
            "group_instance_id": self.profile.instance_id,
        }
        topics_changed = self.planned_for is not None and self.planned_for != self.partitions()
        if self._joins or (topics_changed and not self.awaits_sync):
            self._joins = True
            if not (self.profile.is_cooperative and self._is_assigned):
                self.owned = frozenset()
            self._named = self.names
            protocol = JoinGroupRequestProtocol(name="range", metadata=self._metadata())
            version = 5 if self.profile.instance_id is not None else 3
            request = JoinGroupRequest(
                session_timeout_ms=SESSION_OF_CLASSIC_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                protocol_type="consumer",
                protocols=(protocol,),
                **ids,
            )
            self._ask(version, request)
        elif self.awaits_sync:
            self._ask(4, SyncGroupRequest(generation_id=self.epoch, assignments=self._plan, **ids))
        else:
            self._ask(4, HeartbeatRequest(generation_id=self.epoch, **ids))

    def hear(self, answer: JoinGroupResponse | SyncGroupResponse | HeartbeatResponse) -> None:
        error = answer.error_code
        if error:
            self._refused(error)
        elif isinstance(answer, JoinGroupResponse):
            self.member_id, self.epoch = answer.member_id, answer.generation_id
            self._joins, self.awaits_sync, self.awaits_assignment = False, True, True
            self._is_assigned = answer.leader == ""
            if not self._is_assigned:
                self.owned = frozenset()
            leads = answer.leader == answer.member_id
            self._plan = self._assign(answer) if leads else ()
            self.planned_for = self.partitions() if leads else None
            self.follows = answer.leader not in ("", answer.member_id)
            self.wake_in(0)
        elif isinstance(answer, SyncGroupResponse):
            self.awaits_sync = self.awaits_assignment = False
            before = self.owned
            self.owned = self.read(answer.assignment)
            gave_up = self._is_assigned and bool(before - self.owned)
            self._joins = gave_up or self._named != self.names
            self.wake_in(0 if self._joins else 1_000)
        else:
            self.wake_in(1_000)

    def _refused(self, error: int) -> None:
        if error in FENCED:
            self._abandon()
            self.member_id = ""
        elif error not in AGAIN:
            self._fatal(error)
            return
        self._joins, self.awaits_sync = True, False
        self.wake_in(BACKOFF_MS)

    def leave(self, *, goes_away: bool) -> None:
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.profile.instance_id)
        self.end()
        if self.member_id:
            request = LeaveGroupRequest(group_id=GROUP, members=(identity,))
            self.world.ask(5, self.name, request, lambda answer: None)

    def partitions(self) -> dict[str, int]:
        """The number of partitions of each topic."""
        return {topic.name: topic.partitions for topic in self.world.topics.by_name.values()}

    def _metadata(self) -> bytes:
        names = {
            topic_id: topic.name
            for topic in self.world.topics.by_name.values()
            for topic_id in [topic.topic_id]
        }
        owned: dict[str, list[int]] = {}
        for topic_id, partition in self.owned:
            if topic_id in names:
                owned.setdefault(names[topic_id], []).append(partition)
        subscription = ConsumerProtocolSubscription(
            topics=tuple(sorted(self.names)), owned_partitions=_parts(owned)
        )
        return encode_subscription(subscription, 1)

    def _assign(self, answer: JoinGroupResponse) -> tuple[SyncGroupRequestAssignment, ...]:
        """Each partition to one member that subscribes to its topic, as a leader does."""
        topics = {each.member_id: decode_subscription(each.metadata).topics for each in answer.members}
        plan: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in topics}
        for topic in self.world.topics.by_name.values():
            takers = sorted(member_id for member_id, names in topics.items() if topic.name in names)
            for partition in range(topic.partitions if takers else 0):
                taker = plan[takers[partition % len(takers)]]
                taker.setdefault(topic.name, []).append(partition)
        return tuple(
            SyncGroupRequestAssignment(member_id=member_id, assignment=_encoded(found))
            for member_id, found in plan.items()
        )


def _encoded(assigned: dict[str, list[int]]) -> bytes:
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=_parts(assigned)), 1)


def _parts(of_topics: dict[str, list[int]]) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic=name, partitions=tuple(sorted(those)))
        for name, those in sorted(of_topics.items())
    )


def _by_topic(owned: frozenset[Partition]) -> tuple[TopicPartitions, ...]:
    found: dict[Any, list[int]] = {}
    for topic_id, partition in sorted(owned):
        found.setdefault(topic_id, []).append(partition)
    return tuple(TopicPartitions(topic_id=each, partitions=tuple(those)) for each, those in found.items())
