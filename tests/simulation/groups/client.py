"""A simulated consumer: it finds its coordinator, joins, syncs, fetches, sends heartbeats and commits.

It is honest: as a leader it gives each partition to one member, and it commits only what it owns, and only
forward. Failures around it come from `faults`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from schemas.consumer_protocol import ConsumerProtocolSubscription, TopicPartition, encode_subscription
from schemas.error_code import ErrorCode
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from schemas.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from schemas.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.simulation.groups.checks import MONOTONE_TOPIC, assignment_of, owned

if TYPE_CHECKING:
    from tests.simulation.groups.world import Connection, World

PARTITIONS = 4
BACKOFF_MS = 100
NO_COORDINATOR = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
FATAL = frozenset(
    {
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)
NO_LONGER_A_MEMBER = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND}
)


class Phase(StrEnum):
    """The consumer's next step, or the answer that it waits for."""

    FIND = "find"
    JOIN = "join"
    SYNC = "sync"
    FETCH = "fetch"
    RUN = "run"
    GONE = "gone"


@dataclass(frozen=True)
class Profile:
    """The configuration of a consumer."""

    group_id: str
    group_instance_id: str | None
    assignors: tuple[str, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    join_version: int

    @property
    def heartbeat_interval_ms(self) -> int:
        """Short enough to hear of a rebalance before it is over; else groups might never settle."""
        return min(self.session_timeout_ms // 3, self.rebalance_timeout_ms // 2)


@dataclass(eq=False)
class Client:
    """One consumer process. `connection` is None while it has none."""

    world: World
    name: str
    profile: Profile
    phase: Phase = Phase.FIND
    member_id: str = ""
    generation_id: int = -1
    protocol_name: str | None = None
    subscription: bytes = b"0"
    position: dict[int, int] = field(default_factory=dict)
    connection: Connection | None = None
    stalled_until_ms: int = 0
    _plan: tuple[SyncGroupRequestAssignment, ...] = ()
    _owned: frozenset[int] = frozenset()
    """What it told that it owned when it joined last."""
    _assigned: tuple[int, ...] = ()
    _awaited: Any = None
    _wake: Any = None

    @property
    def is_cooperative(self) -> bool:
        return self.world.parks and self.name.endswith(("0", "2", "4", "6", "8"))

    @property
    def is_alive(self) -> bool:
        return self.phase is not Phase.GONE

    # ---- what it does

    def wake_in(self, delay_ms: int) -> None:
        """Act again after `delay_ms`, and not before."""
        if self._wake is not None:
            self._wake.cancel()
        self._wake = self.world.clock.after(delay_ms, self.act)

    def go(self, phase: Phase, delay_ms: int = 0) -> None:
        self.phase = phase
        self._awaited = None
        self.wake_in(delay_ms)

    def act(self) -> None:
        self._wake = None
        stalled_ms = self.stalled_until_ms - self.world.clock.now_ms
        if stalled_ms > 0:
            self.wake_in(stalled_ms)
        elif self.phase is not Phase.GONE:
            _ACTS[self.phase](self)

    def find(self) -> None:
        self.connection = self.world.connect(self)
        if self.connection is None:
            self.go(Phase.FIND, BACKOFF_MS)
        else:
            self.go(Phase.JOIN)

    def join(self) -> None:
        self._await(self.join_request(), self.profile.join_version)

    def sync(self) -> None:
        self._await(self.sync_request(), 5)

    def fetch(self) -> None:
        topic = OffsetFetchRequestTopics(name=MONOTONE_TOPIC, partition_indexes=self._assigned)
        self._await(OffsetFetchRequestGroup(group_id=self.profile.group_id, topics=(topic,)), 9)

    def run(self) -> None:
        """Send a heartbeat, or commit what was read since the last commit."""
        chance = self.world.chance
        if self.position and chance.random() < 0.4:
            for partition in self.position:
                self.position[partition] += chance.randint(0, 2)
            self._send(self.commit_request(), 9)
        else:
            self._send(self.heartbeat_request(), 4)
        self.wake_in(self.profile.heartbeat_interval_ms)

    # ---- its requests

    def join_request(self) -> JoinGroupRequest:
        profile, metadata = self.profile, self.metadata()
        return JoinGroupRequest(
            group_id=profile.group_id,
            session_timeout_ms=profile.session_timeout_ms,
            rebalance_timeout_ms=profile.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=profile.group_instance_id,
            protocol_type="consumer",
            protocols=tuple(
                JoinGroupRequestProtocol(name=name, metadata=metadata) for name in profile.assignors
            ),
        )

    def metadata(self) -> bytes:
        """The consumer's subscription; cooperative consumers add the partitions that they own."""
        told = tuple(self.position) if self.is_cooperative else ()
        owned_partitions = (TopicPartition(topic=MONOTONE_TOPIC, partitions=told),) if told else ()
        return encode_subscription(
            ConsumerProtocolSubscription(
                topics=(MONOTONE_TOPIC,), user_data=self.subscription, owned_partitions=owned_partitions
            )
        )

    def sync_request(self) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self.profile.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.profile.group_instance_id,
            protocol_type="consumer",
            protocol_name=self.protocol_name,
            assignments=self._plan,
        )

    def heartbeat_request(self) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self.profile.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.profile.group_instance_id,
        )

    def commit_request(self) -> OffsetCommitRequest:
        return OffsetCommitRequest(
            group_id=self.profile.group_id,
            generation_id_or_member_epoch=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.profile.group_instance_id,
            topics=(
                OffsetCommitRequestTopic(
                    name=MONOTONE_TOPIC,
                    partitions=tuple(
                        OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
                        for partition, offset in self.position.items()
                    ),
                ),
            ),
        )

    def leave_request(self) -> LeaveGroupRequest:
        identity = MemberIdentity(
            member_id=self.member_id, group_instance_id=self.profile.group_instance_id, reason="closed"
        )
        return LeaveGroupRequest(group_id=self.profile.group_id, members=(identity,))

    def _await(self, request: Any, version: int) -> None:
        self._awaited = request
        self._send(request, version)

    def _send(self, request: Any, version: int) -> None:
        self.world.send(self, self.connection, request, version)

    # ---- what it is told

    def hear(self, connection: Connection, request: Any, answer: Any) -> None:
        """Take an answer; it counts only if it came over the current connection, for the current request."""
        stalled_ms = self.stalled_until_ms - self.world.clock.now_ms
        if not self.is_alive or connection is not self.connection:
            return
        if stalled_ms > 0:
            self.world.clock.after(stalled_ms, self.hear, connection, request, answer)
        elif request is self._awaited or (
            self.phase is Phase.RUN and self._is_of_today(request) and type(answer) in _BACKGROUND
        ):
            _HEARS[type(answer)](self, answer)

    def disconnected(self) -> None:
        """Its connection is lost; it does not know whether its requests were carried out."""
        self.connection = None
        if self.is_alive:
            self.go(Phase.FIND, self.world.chance.randint(0, BACKOFF_MS))

    def _is_of_today(self, request: Any) -> bool:
        generation: int = getattr(request, "generation_id", None) or getattr(
            request, "generation_id_or_member_epoch", -1
        )
        return (request.member_id, generation) == (self.member_id, self.generation_id)

    def joined(self, answer: JoinGroupResponse) -> None:
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.go(Phase.JOIN)
        elif answer.error_code != ErrorCode.NONE:
            self._told(ErrorCode(answer.error_code))
        else:
            self.member_id, self.generation_id = answer.member_id, answer.generation_id
            self.protocol_name = answer.protocol_name
            self._owned, self.position = frozenset(self.position), {}
            leads = answer.leader == answer.member_id and not answer.skip_assignment
            self._plan = assign(answer.protocol_name or "", answer.members) if leads else ()
            self.go(Phase.SYNC, self.world.chance.choice((0, 5, 50)))

    def synced(self, answer: SyncGroupResponse) -> None:
        if answer.error_code != ErrorCode.NONE:
            self._told(ErrorCode(answer.error_code))
            return
        self._assigned = owned(answer.assignment)
        if self.is_cooperative and not self._owned.issubset(self._assigned):
            self.go(Phase.JOIN)  # it has given up the rest, and tells so
            return
        self.go(Phase.FETCH if self._assigned else Phase.RUN)

    def fetched(self, answer: OffsetFetchResponseGroup) -> None:
        if answer.error_code != ErrorCode.NONE:
            self._told(ErrorCode(answer.error_code), again=Phase.FETCH)
            return
        for topic in answer.topics:
            for partition in topic.partitions:
                self.position[partition.partition_index] = max(partition.committed_offset, 0)
        self.go(Phase.RUN)

    def beat(self, answer: HeartbeatResponse) -> None:
        if answer.error_code != ErrorCode.NONE:
            self._told(ErrorCode(answer.error_code))

    def committed(self, answer: OffsetCommitResponse) -> None:
        errors = {partition.error_code for topic in answer.topics for partition in topic.partitions}
        if errors - {ErrorCode.NONE}:
            self._told(ErrorCode(max(errors)), again=Phase.RUN)

    def _told(self, error: ErrorCode, again: Phase = Phase.JOIN) -> None:
        """React to an error as consumers do, whatever the request was."""
        if error in FATAL:
            self.world.end(self)
        elif error in NO_COORDINATOR:
            self.world.disconnect(self)
        elif error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self.go(again, BACKOFF_MS)
        elif error == ErrorCode.REBALANCE_IN_PROGRESS:
            if self.phase is Phase.RUN and self.position:
                self._send(self.commit_request(), 9)
            self.go(Phase.JOIN)
        else:
            assert error in NO_LONGER_A_MEMBER, error
            if error != ErrorCode.ILLEGAL_GENERATION:
                self.member_id = ""
            self.generation_id = -1
            self.go(Phase.JOIN)


def assign(
    protocol_name: str, members: tuple[JoinGroupResponseMember, ...]
) -> tuple[SyncGroupRequestAssignment, ...]:
    """Each partition to one member: "range" in blocks, "roundrobin" in turn, "sticky" to two members alone.

    Members that get nothing are not named; a stranger is named, and gets nothing.
    """
    ids = sorted(member.member_id for member in members)
    count = len(ids)
    plan: dict[str, list[int]] = {"stranger": []}
    takers = min(count, 2) if protocol_name == "sticky" else count
    for partition in range(PARTITIONS):
        turn = partition * count // PARTITIONS if protocol_name == "range" else partition % takers
        plan.setdefault(ids[turn], []).append(partition)
    return tuple(
        SyncGroupRequestAssignment(member_id=member_id, assignment=assignment_of(partitions))
        for member_id, partitions in plan.items()
    )


_ACTS = {
    Phase.FIND: Client.find,
    Phase.JOIN: Client.join,
    Phase.SYNC: Client.sync,
    Phase.FETCH: Client.fetch,
    Phase.RUN: Client.run,
}
_HEARS: dict[type, Any] = {
    JoinGroupResponse: Client.joined,
    SyncGroupResponse: Client.synced,
    OffsetFetchResponseGroup: Client.fetched,
    HeartbeatResponse: Client.beat,
    OffsetCommitResponse: Client.committed,
}
_BACKGROUND = frozenset({HeartbeatResponse, OffsetCommitResponse})
