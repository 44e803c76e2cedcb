"""A coordinator with the test's own clock, member ids and journal.

A `History` sends requests, lets time pass from deadline to deadline, and remembers every answer. After each
step it checks the invariants of all groups (`invariants.check`). A `Client` is one consumer, which remembers
its id and generation as real ones do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kshim.coordination.decision import Caller, Decision, GroupRecord
from kshim.coordination.fencing import ProducerIdAndEpoch
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.consumer.requests import DescribeConsumerGroup, MemberHeartbeat
from kshim.coordination.groups.coordinator import Coordinator
from kshim.coordination.groups.expiry_report import ExpiryReport
from kshim.coordination.groups.hard_state import HardState
from kshim.coordination.groups.rebalance_record import Rebalance, Resumed, TwoHolders
from kshim.coordination.groups.records import decode_record, encode_record
from kshim.coordination.groups.refusals import (
    DeleteGroup,
    DescribeGroup,
    EndTransaction,
    StableOffsetFetch,
    WaitingHeartbeat,
)
from kshim.coordination.groups.settings import Settings
from kshim.coordination.groups.steering_requests import ExpireMember, FenceMember, ForceRebalance
from kshim.coordination.groups.timers import TimerKey
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import NO_ID, TopicId
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_delete import OffsetDeleteRequest
from schemas.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponsePartitions,
)
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from schemas.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from schemas.records.end_txn_marker import EndTxnMarker
from schemas.registry import VERSIONS
from tests.coordination.groups import invariants

START_MS = 1_700_000_000_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000
MOST_TIMERS = 10_000

LATEST = {
    JoinGroupRequest: VERSIONS[ApiKey.JOIN_GROUP][-1],
    SyncGroupRequest: VERSIONS[ApiKey.SYNC_GROUP][-1],
    HeartbeatRequest: VERSIONS[ApiKey.HEARTBEAT][-1],
    WaitingHeartbeat: VERSIONS[ApiKey.HEARTBEAT][-1],
    LeaveGroupRequest: VERSIONS[ApiKey.LEAVE_GROUP][-1],
    OffsetCommitRequest: VERSIONS[ApiKey.OFFSET_COMMIT][-1],
    OffsetFetchRequestGroup: VERSIONS[ApiKey.OFFSET_FETCH][-1],
    StableOffsetFetch: VERSIONS[ApiKey.OFFSET_FETCH][-1],
    TxnOffsetCommitRequest: VERSIONS[ApiKey.TXN_OFFSET_COMMIT][-1],
    OffsetDeleteRequest: VERSIONS[ApiKey.OFFSET_DELETE][-1],
    DescribeGroup: VERSIONS[ApiKey.DESCRIBE_GROUPS][-1],
    DeleteGroup: VERSIONS[ApiKey.DELETE_GROUPS][-1],
    ForceRebalance: 0,
    ExpireMember: 0,
    FenceMember: 0,
    MemberHeartbeat: VERSIONS[ApiKey.CONSUMER_GROUP_HEARTBEAT][-1],
    DescribeConsumerGroup: VERSIONS[ApiKey.CONSUMER_GROUP_DESCRIBE][-1],
}


def protocols(*names: str, metadata: bytes = b"topics") -> tuple[JoinGroupRequestProtocol, ...]:
    """A member's protocols: these names, each with the same subscription."""
    return tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names)


class Written(NamedTuple):
    """A record of the journal, and the producer whose transaction it belongs to."""

    record: GroupRecord
    producer: ProducerIdAndEpoch | None = None


Entry = Written | EndTxnMarker


class History:
    """One coordinator from its first moment on, which leads all its shards."""

    def __init__(self, *, partitions: int = 2, **settings: int) -> None:
        self.settings = Settings(group_initial_rebalance_delay_ms=DELAY_MS)._replace(**settings)
        self.partitions = partitions
        self.now_ms = START_MS
        self.topic_ids: dict[str, TopicId] = {}
        """The ids with which offsets are kept for topics that are named alone."""
        self.journal: list[tuple[int, Entry]] = []
        self.answers: dict[int, Any] = {}
        self.rebalances: list[Rebalance] = []
        self.expired: list[ExpiryReport] = []
        self.resumed: list[Resumed] = []
        self.two_holders: list[str] = []
        self._sent = 0
        self._ids = 0
        self._clients: dict[int, Client] = {}
        self.coordinator = self._loaded()

    # ---- requests and answers

    def send(
        self,
        request: Any,
        version: int | None = None,
        *,
        client_id: str = "client",
        client: Client | None = None,
    ) -> int:
        """Send a request and return its token; `client` gets the answer when it comes."""
        token = self._sent
        self._sent += 1
        if client is not None:
            self._clients[token] = client
        version = LATEST[type(request)] if version is None else version
        caller = Caller(token, version, client_id, "/127.0.0.1")
        self._carry_out(self.coordinator.handle(caller, request, self.now_ms))
        return token

    def ask(self, request: Any, version: int | None = None) -> Any:
        """Send a request that is answered at once, and return the answer."""
        return self.answer(self.send(request, version))

    def answer(self, token: int) -> Any:
        """The answer to the request `token`, which must be there by now."""
        assert token in self.answers, f"request {token} is still parked"
        return self.answers[token]

    def is_parked(self, token: int) -> bool:
        return token not in self.answers

    @property
    def parked(self) -> set[int]:
        """The tokens of the requests without an answer."""
        return set(range(self._sent)) - self.answers.keys()

    def end_transaction(
        self,
        producer_id: int,
        *,
        committed: bool,
        producer_epoch: int = 0,
        coordinator_epoch: int = 0,
        group_id: str = "group",
    ) -> ErrorCode:
        """A transaction coordinator ends a transaction in the shard of `group_id`."""
        token = self._sent
        self._sent += 1
        marker = EndTxnMarker(producer_id, producer_epoch, committed, coordinator_epoch, self.now_ms)
        shard = self.coordinator.shard_for(group_id)
        ending = EndTransaction(shard, marker)
        self._carry_out(self.coordinator.handle(Caller(token, 0), ending, self.now_ms))
        return ErrorCode(self.answer(token))

    def list_groups(self, **filters: tuple[str, ...]) -> ListGroupsResponse:
        return self.coordinator.list_groups(ListGroupsRequest(**filters))

    def release_heartbeat(self, client: Client, token: int) -> None:
        """Report that another request follows a heartbeat on its connection."""
        release, shard = self.coordinator.release_heartbeat, self.coordinator.shard_for(client.group_id)
        self._carry_out(release(shard, client.group_id, client.member_id, token, self.now_ms))

    def delete_topics(self, *topics: str) -> None:
        """Report that these topics were deleted."""
        for shard in range(self.partitions):
            ids = {name: self.topic_ids.get(name, NO_ID) for name in topics}
            self._carry_out(self.coordinator.delete_offsets(shard, ids, self.now_ms))

    # ---- time

    def sleep(self, ms: int) -> None:
        """Pass time. Timers fire at their deadlines."""
        until_ms, fired = self.now_ms + ms, 0
        while (deadline_ms := self.coordinator.next_deadline_ms()) is not None and deadline_ms <= until_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            for decision in self.coordinator.advance(self.now_ms):
                self._carry_out(decision)
                fired += 1
                assert fired < MOST_TIMERS, "timers are armed again without end"
        self.now_ms = until_ms

    # ---- restarts

    def restart(self) -> None:
        """Start a new coordinator from the journal. Requests that were parked get no answer from it."""
        for token in self.parked:
            self.answers[token] = None
        self.coordinator = self._loaded()

    def resign(self) -> None:
        """Give up all shards, as a stopping broker does."""
        for shard in range(self.partitions):
            decision = self.coordinator.unload(shard, self.now_ms)
            self._keep_reports(decision)
            self._deliver(decision)

    def begin_load(self) -> None:
        """Have all shards loading, for ever."""
        self.resign()
        for shard in range(self.partitions):
            self.coordinator.begin_load(shard)

    def _loaded(self) -> Coordinator:
        coordinator = Coordinator(
            self.settings, self._new_member_id, self.partitions, lambda name: self.topic_ids.get(name, NO_ID)
        )
        for shard in range(self.partitions):
            coordinator.begin_load(shard)
        for shard, entry in self.journal:
            if isinstance(entry, EndTxnMarker):
                coordinator.replay_marker(shard, entry)
            else:
                assert coordinator.load(shard, [encode_record(entry.record)], entry.producer) == []
        self.coordinator = coordinator
        for shard in range(self.partitions):
            self._carry_out(coordinator.finish_load(shard, self.now_ms))
        return coordinator

    # ---- what the coordinator holds

    def group(self, group_id: str = "group") -> ClassicGroup:
        """The live group, as the coordinator holds it."""
        return self.groups()[group_id]

    def groups(self) -> dict[str, ClassicGroup]:
        return {
            group_id: group
            for shard in self.coordinator._shards.values()
            for group_id, group in shard.groups.items()
        }

    def hard_states(self) -> list[HardState]:
        return [shard.hard_state for shard in self.coordinator._shards.values()]

    def deadline_ms(self, timer: TimerKey) -> int | None:
        """The ms until a timer is due; None if it is not armed."""
        deadline_ms = self.coordinator._timers.deadline_ms(timer)
        return None if deadline_ms is None else deadline_ms - self.now_ms

    def records(self) -> list[GroupRecord]:
        """The records of the journal, without their shards."""
        return [entry.record for _, entry in self.journal if isinstance(entry, Written)]

    # ---- clients

    def client(self, group_id: str = "group", **fields: Any) -> Client:
        """A consumer that has not joined yet."""
        return Client(self, group_id, **fields)

    def stable(
        self, members: int, group_id: str = "group", *, static: bool = False, **fields: Any
    ) -> list[Client]:
        """A stable group; its members joined in this order, the leader first, and member n is assigned
        b"n"."""
        clients = [
            self.client(group_id, group_instance_id=f"instance-{n}" if static else None, **fields)
            for n in range(members)
        ]
        for client in clients:
            client.enter()
        self.sleep(self.settings.group_initial_rebalance_delay_ms * (1 if members == 1 else 2))
        assign(clients)
        assert self.group(group_id).state == "Stable"
        return clients

    # ---- inside

    def _new_member_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}-{self._ids}"

    def _carry_out(self, decision: Decision) -> None:
        shard = decision.shard
        for record in decision.records:
            stored = Written(_through_bytes(record), decision.producer)
            self.journal.append((shard, stored))
            self.coordinator.replay(shard, [stored.record], stored.producer)
        if decision.marker is not None:
            self.journal.append((shard, decision.marker))
            self.coordinator.replay_marker(shard, decision.marker)
        self._keep_reports(decision)
        self._deliver(decision)
        invariants.check(self)

    def _keep_reports(self, decision: Decision) -> None:
        self.rebalances += [report for report in decision.reports if isinstance(report, Rebalance)]
        self.two_holders += [str(report) for report in decision.reports if isinstance(report, TwoHolders)]
        self.resumed += [report for report in decision.reports if isinstance(report, Resumed)]
        self.expired += [report for report in decision.reports if isinstance(report, ExpiryReport)]

    def _deliver(self, decision: Decision) -> None:
        for token, response in decision.replies:
            assert token not in self.answers, f"request {token} is answered twice"
            self.answers[token] = response
            client = self._clients.get(token)
            if client is not None and isinstance(response, JoinGroupResponse):
                client.adopt(response)


def _through_bytes(record: GroupRecord) -> GroupRecord:
    """The record after it was encoded and decoded."""
    read = decode_record(*encode_record(record))
    assert read is not None, f"nobody knows the key of {record}"
    return read


@dataclass(eq=False)
class Client:
    """A consumer. Any field of its requests can be replaced."""

    history: History
    group_id: str = "group"
    group_instance_id: str | None = None
    session_timeout_ms: int = SESSION_MS
    rebalance_timeout_ms: int = REBALANCE_MS
    protocol_type: str = "consumer"
    protocols: tuple[JoinGroupRequestProtocol, ...] = field(default_factory=lambda: protocols("range"))
    client_id: str = "client"
    member_id: str = ""
    generation_id: int = -1

    def join(self, version: int | None = None, **fields: Any) -> int:
        """Send one JoinGroup; returns its token."""
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            protocol_type=self.protocol_type,
            protocols=self.protocols,
        )
        return self.history.send(
            replace(request, **fields), version, client_id=self.client_id, client=None if fields else self
        )

    def adopt(self, answer: JoinGroupResponse) -> None:
        """Remember the id and generation of a JoinGroup's answer."""
        if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_id = answer.member_id
        if answer.error_code == ErrorCode.NONE:
            self.generation_id = answer.generation_id

    def enter(self, version: int | None = None) -> int:
        """Join, twice if a member id must be obtained first; returns the token of the JoinGroup that
        counts."""
        token = self.join(version)
        if (
            not self.history.is_parked(token)
            and self.answer(token).error_code == ErrorCode.MEMBER_ID_REQUIRED
        ):
            return self.join(version)
        if self.history.is_parked(token) and not self.member_id:
            self._learn_id(token)
        return token

    def _learn_id(self, token: int) -> None:
        """Learn now the id of a member that was admitted at once. The answer with the id comes only when the
        join phase ends."""
        for member in self.history.group(self.group_id).members.values():
            if member.parked_join == token:
                self.member_id = member.member_id

    def sync(
        self, assignments: Mapping[Client, bytes] | None = None, version: int | None = None, **fields: Any
    ) -> int:
        """Send one SyncGroup; returns its token."""
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=client.member_id, assignment=assignment)
                for client, assignment in (assignments or {}).items()
            ),
        )
        return self.history.send(replace(request, **fields), version)

    def heartbeat(self, version: int | None = None, **fields: Any) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
        )
        return ErrorCode(self.history.ask(replace(request, **fields), version).error_code)

    def wait(self, **fields: Any) -> int:
        """Send a heartbeat whose answer may wait; returns its token."""
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
        )
        return self.history.send(WaitingHeartbeat(replace(request, **fields)))

    def leave(self, **fields: Any) -> ErrorCode:
        """Leave; returns the error of its own entry, or of the whole request."""
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.group_instance_id)
        request = LeaveGroupRequest(group_id=self.group_id, members=(replace(identity, **fields),))
        answer = self.history.answer(self.history.send(request, client_id=self.client_id))
        return ErrorCode(answer.error_code or answer.members[0].error_code)

    def commit(
        self, offset: int, version: int | None = None, metadata: str | None = None, **fields: Any
    ) -> ErrorCode:
        """Commit `offset` for partition 0 of the topic; returns the partition's error."""
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            topics=(
                OffsetCommitRequestTopic(
                    name="topic",
                    partitions=(
                        OffsetCommitRequestPartition(
                            partition_index=0, committed_offset=offset, committed_metadata=metadata
                        ),
                    ),
                ),
            ),
        )
        answer = self.history.ask(replace(request, **fields), version)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def txn_request(
        self,
        offsets: Mapping[int, int],
        producer_id: int,
        metadata: str | None = None,
        leader_epoch: int = -1,
    ) -> TxnOffsetCommitRequest:
        """A commit of `offsets`, by partition of the topic, in a producer's transaction."""
        partitions = tuple(
            TxnOffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset,
                committed_leader_epoch=leader_epoch,
                committed_metadata=metadata,
            )
            for partition, offset in offsets.items()
        )
        return TxnOffsetCommitRequest(
            transactional_id=f"transactional-{producer_id}",
            group_id=self.group_id,
            producer_id=producer_id,
            producer_epoch=0,
            generation_id_or_member_epoch=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            topics=(TxnOffsetCommitRequestTopic(name="topic", partitions=partitions),),
        )

    def txn_commit(
        self,
        offset: int,
        producer_id: int,
        version: int | None = None,
        metadata: str | None = None,
        partition: int = 0,
        leader_epoch: int = -1,
        **fields: Any,
    ) -> ErrorCode:
        """Commit `offset` in a producer's transaction; returns the partition's error."""
        request = self.txn_request({partition: offset}, producer_id, metadata, leader_epoch)
        answer = self.history.ask(replace(request, **fields), version)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def committed(self, partition: int = 0) -> int:
        """The offset that the group has committed for a partition of the topic; -1 if none."""
        return self.fetched(partition).committed_offset

    def fetched(self, partition: int = 0, *, stable: bool = False) -> OffsetFetchResponsePartitions:
        """OffsetFetch's answer for one partition."""
        topic = OffsetFetchRequestTopics(name="topic", partition_indexes=(partition,))
        request = OffsetFetchRequestGroup(group_id=self.group_id, topics=(topic,))
        answer = self.history.ask(StableOffsetFetch(request) if stable else request)
        fetched: OffsetFetchResponsePartitions = answer.topics[0].partitions[0]
        return fetched

    def answer(self, token: int) -> Any:
        return self.history.answer(token)

    def error(self, token: int) -> ErrorCode:
        return ErrorCode(self.answer(token).error_code)


def assign(clients: list[Client]) -> list[int]:
    """Send SyncGroup for all; the first is the leader and assigns b"0", b"1" ... to them. Returns the
    tokens."""
    leader = clients[0]
    plan = {client: b"%d" % n for n, client in enumerate(clients)}
    return [client.sync(plan if client is leader else None) for client in clients]
