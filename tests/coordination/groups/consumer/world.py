"""A coordinator of consumer groups with the test's own clock, topics, member ids and journal.

After each step the journal is replayed into a second state, which must equal the first. `Given` builds a
group from records, as Kafka's own tests do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kshim.coordination.decision import Caller, Decision, GroupRecord, RecordKey, RecordValue
from kshim.coordination.groups.consumer.environment import Environment
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import Member
from kshim.coordination.groups.consumer.partitions import InTarget
from kshim.coordination.groups.consumer.requests import MemberHeartbeat
from kshim.coordination.groups.consumer.subscriptions import Resolved
from kshim.coordination.groups.consumer.topics import Topic, metadata_hash
from kshim.coordination.groups.coordinator import Coordinator
from kshim.coordination.groups.hard_state import HardState
from kshim.coordination.groups.records import encode_record
from kshim.coordination.groups.settings import Settings
from kshim.coordination.groups.stored_records import StoredRecords
from kshim.coordination.groups.timers import TimerKey, TimerKind
from schemas.error_code import ErrorCode
from schemas.internal_topics.consumer_group_log import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from schemas.internal_topics.group_metadata_log import GroupMetadataKey, OffsetCommitKey
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

START_MS = 1_700_000_000_000
G = "g"
FOO, BAR, ZAR = UUID(int=0xF00), UUID(int=0xBA4), UUID(int=0x2A4)
IDS = {"foo": FOO, "bar": BAR, "zar": ZAR}
KINDS: dict[type, int] = {
    OffsetCommitKey: 1,
    GroupMetadataKey: 2,
    ConsumerGroupMetadataKey: 3,
    ConsumerGroupPartitionMetadataKey: 4,
    ConsumerGroupMemberMetadataKey: 5,
    ConsumerGroupTargetAssignmentMetadataKey: 6,
    ConsumerGroupTargetAssignmentMemberKey: 7,
    ConsumerGroupCurrentMemberAssignmentKey: 8,
    ConsumerGroupRegularExpressionKey: 16,
}


def held(epoch: int, **partitions: Collection[int]) -> dict[UUID, dict[int, int]]:
    """Partitions by the names of their topics, all since one epoch."""
    return {IDS[topic]: dict.fromkeys(those, epoch) for topic, those in partitions.items()}


def target(**partitions: Collection[int]) -> dict[UUID, frozenset[int]]:
    """A target by the names of its topics."""
    return {IDS[topic]: frozenset(those) for topic, those in partitions.items()}


def owned(**partitions: Collection[int]) -> tuple[TopicPartitions, ...]:
    """Partitions as a heartbeat says them."""
    return tuple(
        TopicPartitions(topic_id=IDS[topic], partitions=tuple(those)) for topic, those in partitions.items()
    )


class FakeTopics:
    """Implements `Topics`."""

    def __init__(self) -> None:
        self.by_name: dict[str, Topic] = {}
        self.created = 0

    def put(self, name: str, partitions: int, racks: tuple[tuple[str, ...], ...] = ()) -> None:
        """Create a topic, or change it."""
        self.created += name not in self.by_name
        self.by_name[name] = Topic(name, IDS.get(name, UUID(int=hash(name) % 2**64)), partitions, racks)

    def named(self, name: str) -> Topic | None:
        return self.by_name.get(name)

    def with_id(self, topic_id: UUID) -> Topic | None:
        return next((topic for topic in self.by_name.values() if topic.topic_id == topic_id), None)

    def names(self) -> Collection[str]:
        return self.by_name.keys()

    def version(self) -> int:
        return self.created


@dataclass
class FakeConfigs:
    """Implements `GroupConfigs`; the same for all groups."""

    session_ms: int = 45_000
    interval_ms: int = 5_000
    assignment_ms: int = 0
    is_set: bool = False

    def session_timeout_ms(self, group_id: str) -> int:
        return self.session_ms

    def at(self, node_id: int) -> FakeConfigs:
        return self

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self.interval_ms

    def is_interval_set(self, group_id: str) -> bool:
        return self.is_set

    def assignment_interval_ms(self, group_id: str) -> int:
        return self.assignment_ms


@dataclass
class Given:
    """A group as it is written before a test begins."""

    epoch: int = 10
    members: list[tuple[Member, Mapping[UUID, frozenset[int]]]] = field(default_factory=list)
    assignment_epoch: int | None = None
    resolved: dict[str, Resolved] = field(default_factory=dict)
    metadata_hash: int | None = None

    def records(self, group_id: str, topics: FakeTopics) -> Iterator[GroupRecord]:
        names = {name for member, _ in self.members for name in member.topic_names}
        names |= {name for each in self.resolved.values() for name in each.topics}
        found = [topic for topic in map(topics.named, sorted(names)) if topic is not None]
        digest = metadata_hash(found) if self.metadata_hash is None else self.metadata_hash
        for member, _ in self.members:
            key = ConsumerGroupMemberMetadataKey(group=group_id, member_id=member.member_id)
            yield GroupRecord(key, member.to_metadata())
        for regex, (matches, version, timestamp_ms) in self.resolved.items():
            yield GroupRecord(
                ConsumerGroupRegularExpressionKey(group=group_id, regular_expression=regex),
                ConsumerGroupRegularExpressionValue(
                    topics=tuple(sorted(matches)), version=version, timestamp=timestamp_ms
                ),
            )
        yield GroupRecord(
            ConsumerGroupMetadataKey(group=group_id),
            ConsumerGroupMetadataValue(epoch=self.epoch, metadata_hash=digest),
        )
        for member, wanted in self.members:
            yield GroupRecord(
                ConsumerGroupTargetAssignmentMemberKey(group=group_id, member_id=member.member_id),
                ConsumerGroupTargetAssignmentMemberValue(topic_partitions=InTarget(wanted)),
            )
        yield GroupRecord(
            ConsumerGroupTargetAssignmentMetadataKey(group=group_id),
            ConsumerGroupTargetAssignmentMetadataValue(
                assignment_epoch=self.epoch if self.assignment_epoch is None else self.assignment_epoch
            ),
        )
        for member, _ in self.members:
            member_key = ConsumerGroupCurrentMemberAssignmentKey(group=group_id, member_id=member.member_id)
            yield GroupRecord(member_key, member.to_current())


def stable(
    member_id: str,
    epoch: int = 10,
    names: Collection[str] = ("foo", "bar"),
    assigned: Mapping[UUID, Mapping[int, int]] | None = None,
    **more: Any,
) -> Member:
    """A member that has what it is to have."""
    return Member(
        member_id,
        epoch=epoch,
        previous_epoch=more.pop("previous_epoch", epoch - 1),
        client_id="client",
        client_host="/host",
        rebalance_timeout_ms=more.pop("rebalance_timeout_ms", 5_000),
        topic_names=frozenset(names),
        assigned=assigned or {},
        **more,
    )


class World:
    """One coordinator that leads all its shards."""

    def __init__(self, given: Given | None = None, *, partitions: int = 1, **settings: Any) -> None:
        self.now_ms = START_MS
        self.topics = FakeTopics()
        self.topics.put("foo", 6)
        self.topics.put("bar", 3)
        self.configs = FakeConfigs()
        self.settings = Settings()._replace(**settings)
        self.partitions = partitions
        self.journal: list[GroupRecord] = []
        self.records: tuple[GroupRecord, ...] = ()
        """The records of the last step."""
        self._tokens = 0
        self._ids = 0
        self.coordinator = self._new_coordinator()
        if given is not None:
            self.journal = list(given.records(G, self.topics))
        self.reload()

    def _new_coordinator(self) -> Coordinator:
        def new_id() -> str:
            self._ids += 1
            return f"id-{self._ids}"

        environment = Environment(self.configs, new_id, self.topics, self.settings.group_consumer_assignors)
        return Coordinator(
            self.settings,
            lambda prefix: f"{prefix}-{new_id()}",
            self.partitions,
            environment=environment,
        )

    def reload(self) -> None:
        """Load the journal into a new coordinator."""
        self.coordinator = self._new_coordinator()
        for shard in range(self.partitions):
            self.coordinator.begin_load(shard)
        self.coordinator.load(0, map(encode_record, self.journal), None)
        for shard in range(self.partitions):
            self._note(self.coordinator.finish_load(shard, self.now_ms))

    # ---- steps

    def ask(self, request: Any, version: int = 1, client_id: str = "client") -> Any:
        """Send a request; return the answer, None if it is parked."""
        self._tokens += 1
        caller = Caller(self._tokens, version, client_id, "/host")
        decision = self.coordinator.handle(caller, request, self.now_ms)
        self._note(decision)
        return next((reply.response for reply in decision.replies if reply.token == caller.token), None)

    def heartbeat(
        self, member_id: str, epoch: int, version: int = 1, client_id: str = "client", **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat of the group."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=fields.pop("group_id", G), member_id=member_id, member_epoch=epoch, **fields
        )
        answer = self.ask(MemberHeartbeat(request), version, client_id)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        return answer

    def join(self, member_id: str, *names: str, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Send the heartbeat of a member that joins."""
        fields = {"rebalance_timeout_ms": 5_000, "topic_partitions": (), **fields}
        if "subscribed_topic_regex" not in fields or names:
            fields["subscribed_topic_names"] = names
        return self.heartbeat(member_id, 0, **fields)

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic, and let the groups know."""
        self.topics.put(topic, partitions)
        self.coordinator.topic_changed(topic, "was created", self.now_ms)

    def advance(self, ms: int = 0) -> None:
        """Let time pass, and do what falls due; `records` has all that this writes."""
        end_ms = self.now_ms + ms
        found: tuple[GroupRecord, ...] = ()
        while (due_ms := self.coordinator.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            for decision in self.coordinator.advance(self.now_ms):
                self._note(decision)
                found += decision.records
        self.now_ms = end_ms
        self.records = found

    def _note(self, decision: Decision) -> None:
        self.records = decision.records
        self.journal += decision.records
        self.coordinator.replay(decision.shard, decision.records)
        self._check()

    def _check(self) -> None:
        """What is in the journal is what the groups are."""
        if self.partitions > 1:
            return
        loaded = HardState()
        StoredRecords(loaded).replay(map(encode_record, self.journal), None)
        state = self.coordinator._shards[0].hard_state
        assert state.groups == loaded.groups
        assert {key: facts(group) for key, group in state.consumer.groups.items()} == {
            key: facts(group) for key, group in loaded.consumer.groups.items()
        }
        for group in state.consumer.groups.values():
            check_owners(group)

    # ---- looking

    def group(self, group_id: str = G) -> ConsumerGroup:
        return self.groups()[group_id]

    def groups(self) -> dict[str, ConsumerGroup]:
        return self.coordinator._shards[0].consumer.groups

    def member(self, member_id: str) -> Member:
        return self.group().members[member_id]

    def kinds(self) -> list[int]:
        """The kinds of the records of the last step; tombstones are negative."""
        return [KINDS[type(key)] * (1 if value is not None else -1) for key, value in self.records]

    def written(self, key: type) -> list[RecordValue | None]:
        """The values of the last step's records of one kind."""
        return [value for each, value in self.records if isinstance(each, key)]

    def due_in(self, kind: TimerKind, member_id: str = "") -> int | None:
        """In how many ms a timer is due; None if it is not armed."""
        at_ms = self.coordinator._timers.deadline_ms(TimerKey(kind, G, member_id))
        return None if at_ms is None else at_ms - self.now_ms


def facts(group: ConsumerGroup) -> dict[str, Any]:
    """All that records say of a group."""
    known = group.subscriptions
    return {
        "epochs": (group.epoch, group.assignment_epoch, group.assigned_ms, group.metadata_hash),
        "members": group.members,
        "static": group.static_members,
        "targets": group.targets,
        "state": group.state,
        "old": group.has_old_metadata,
        "partitions": group.partition_epochs._epochs,
        "counts": (known.by_name, known.by_regex, known.regexes, known.assignors, known.resolved),
        "classic": (known.classic_members, known.classic_protocols),
    }


def check_owners(group: ConsumerGroup) -> None:
    """No partition is held by two members, and each that is held has the epoch of its member."""
    marked = {}
    for member in group.members.values():
        for which in (member.assigned, member.revoking):
            for topic_id, partitions in which.items():
                for partition in partitions:
                    assert (topic_id, partition) not in marked, "two members hold a partition"
                    marked[topic_id, partition] = member.epoch
    for (topic_id, partition), epoch in marked.items():
        assert group.partition_epochs.of(topic_id, partition) == epoch


def shown(response: ConsumerGroupHeartbeatResponse) -> dict[UUID, set[int]] | None:
    """The assignment in an answer; None if there is none."""
    if response.assignment is None:
        return None
    return {each.topic_id: set(each.partitions) for each in response.assignment.topic_partitions}


def error_of(response: Any) -> tuple[ErrorCode, str | None]:
    """The error of an answer, and its message."""
    return ErrorCode(response.error_code), response.error_message


def key_of(key: RecordKey) -> tuple[int, str]:
    """A record's kind, and its member or expression."""
    return KINDS[type(key)], getattr(key, "member_id", getattr(key, "regular_expression", ""))
