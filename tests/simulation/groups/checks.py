"""Invariants of each decision, each record and each answer, and after each step.

An answer is compared with what is durable when it leaves the broker, so that no client ever learns something
that a crash could take back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from kshim.coordination.decision import Decision
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.expiry_report import ExpiryReport
from kshim.coordination.groups.offered import Protocols
from kshim.coordination.groups.rebalance_record import Rebalance
from kshim.coordination.groups.refusals import StableOffsetFetch
from kshim.coordination.groups.states import State
from schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
    decode_assignment,
    encode_assignment,
)
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
)
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from schemas.messages.join_group import JoinGroupRequest, JoinGroupResponse
from schemas.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from schemas.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from schemas.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from schemas.records.end_txn_marker import EndTxnMarker
from tests.coordination.groups import invariants
from tests.simulation.groups.journal import Entry
from tests.simulation.groups.node import Node

EMPTY, PREPARING, COMPLETING, STABLE = (
    State.EMPTY,
    State.PREPARING_REBALANCE,
    State.COMPLETING_REBALANCE,
    State.STABLE,
)
FOREIGN = 99
"""A partition that no leader assigns, but other members try to assign."""
MONOTONE_TOPIC = "topic"
"""Only group members commit offsets for it, and no member ever commits a lower one."""

ONE_DECISION: dict[tuple[State, State], frozenset[int]] = {
    (EMPTY, EMPTY): frozenset({0}),
    (EMPTY, PREPARING): frozenset({0}),
    (PREPARING, PREPARING): frozenset({0}),
    (PREPARING, COMPLETING): frozenset({1}),
    (PREPARING, EMPTY): frozenset({1}),
    (COMPLETING, COMPLETING): frozenset({0, 1}),
    (COMPLETING, STABLE): frozenset({0}),
    (COMPLETING, PREPARING): frozenset({0}),
    (COMPLETING, EMPTY): frozenset({1}),
    (STABLE, STABLE): frozenset({0}),
    (STABLE, PREPARING): frozenset({0}),
    (STABLE, COMPLETING): frozenset({1}),
    (STABLE, EMPTY): frozenset({1}),
}
"""The states between which one decision may move a group, and by how much its generation may grow: by one
whenever a join phase ends, even one that began in the same moment."""


def identity(member_id: str) -> str:
    """A name for a member that stays the same when a static member gets a new id: its instance id begins with
    "static"."""
    return member_id.rpartition("-")[0] if member_id.startswith("static") else member_id


def assignment_of(partitions: Iterable[int]) -> bytes:
    """A consumer's assignment of these partitions of the topic; no bytes for none."""
    assigned = tuple(partitions)
    if not assigned:
        return b""
    topics = (TopicPartition(topic=MONOTONE_TOPIC, partitions=assigned),)
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=topics))


def owned(assignment: bytes) -> tuple[int, ...]:
    """The partitions of an assignment."""
    if not assignment:
        return ()
    return tuple(
        partition
        for topic in decode_assignment(assignment).assigned_partitions
        for partition in topic.partitions
    )


OffsetKey = tuple[str, str, int]
"""A group, a topic and a partition."""


class Stands(NamedTuple):
    """The state of a group between two decisions."""

    state: State
    generation: int
    is_delayed: bool
    """Whether it is held open for the initial rebalance delay."""


class Checks:
    """Remembers for each group what its next decision, record and answer must agree with."""

    def __init__(self) -> None:
        self.rebalances = 0
        self.terms: dict[int, int] = defaultdict(int)
        """How often each shard has been loaded."""
        self.groups: dict[str, GroupMetadataValue] = {}
        self.offsets: dict[OffsetKey, OffsetCommitValue] = {}
        """What is durable: a plain reading of the journal, in which the last value of a key counts."""
        self.pending: dict[int, dict[OffsetKey, tuple[int, OffsetCommitValue]]] = defaultdict(dict)
        """For each producer id the durable offsets of its open transaction: each one's place in the journal,
        and its value."""
        self._places: dict[OffsetKey, int] = {}
        """The place in the journal of the offset that counts."""
        self._place = 0
        self._epochs: dict[tuple[int, int], int] = defaultdict(int)
        """For each shard and producer id the latest durable epoch."""
        self._coordinator_epochs: dict[tuple[int, int], int] = defaultdict(int)
        """For each shard and producer id the epoch of the coordinator that ended its last transaction."""
        self._generations: dict[tuple[str, int], tuple[int, GroupMetadataValue]] = {}
        """For each group and generation its last durable record, and in which of the group's lives it was
        written."""
        self._given: dict[tuple[str, int, str], set[bytes]] = {}
        """The durable assignments of a group's generation and member."""
        self._kept: set[tuple[int, OffsetKey, int]] = set()
        """Every offset that was ever durable, with its producer: a later decision of the same turn, durable
        together with it, may have replaced it."""
        self._shard_of: dict[str, int] = {}
        self._stood: dict[tuple[Node, int], dict[str, Stands]] = {}
        self._leaders: dict[tuple[str, int, int, int], tuple[str, str | None, frozenset[str]]] = {}
        self._deleted: dict[str, int] = defaultdict(int)
        self._lives: dict[str, int] = defaultdict(int)
        """How often each group was deleted, by a decision and durably: its generations then start again."""
        self._owners: dict[tuple[str, int, int], dict[int, str]] = defaultdict(dict)

    # ---- each decision

    def began_to_lead(self, node: Node, shard: int) -> None:
        """A load has ended: the shard must know what is durable."""
        self.terms[shard] += 1
        self._stood.pop((node, shard), None)
        self.shard_knows_what_is_durable(node, shard)

    def decided(self, node: Node, shard: int, decision: Decision, *, is_due: bool) -> None:
        for rebalance in (report for report in decision.reports if isinstance(report, Rebalance)):
            self.rebalances += 1
            evicted = [member_id for member_id in rebalance.evicted if identity(member_id) != member_id]
            assert not evicted, f"static members stay until their session ends: {evicted}"
        holder = node.coordinator._shards.get(shard)
        is_serving = holder is not None and not holder.is_loading
        for token, response in decision.replies:
            assert token not in node.answers, f"{node.requests[token]} is answered twice"
            node.answers[token] = response
            check = _DECIDED.get(type(response))
            if check is not None and is_serving:
                check(self, node, shard, node.requests[token], response, is_due)
        expired = any(isinstance(report, ExpiryReport) for report in decision.reports)
        for key, _ in decision.records if expired and holder is not None else ():
            if isinstance(key, OffsetCommitKey):
                pending = holder.hard_state.pending.of_group(key.group)
                assert (key.topic, key.partition) not in pending, f"{key} expires while it is pending"
        self._moved(node, shard, decision, is_due)

    def _moved(self, node: Node, shard: int, decision: Decision, is_due: bool) -> None:
        stood = self._stood.get((node, shard), {})
        holder = node.coordinator._shards.get(shard)
        groups = {} if holder is None else holder.groups
        stands = self._stood[node, shard] = {
            group_id: Stands(group.state, group.generation, group.initial_delay is not None)
            for group_id, group in groups.items()
        }
        for group_id in stood.keys() - stands.keys():
            self._deleted[group_id] += 1
        for group_id, now in stands.items():
            before = stood.get(group_id, now)
            grew = ONE_DECISION.get((before.state, now.state), frozenset())
            assert now.generation - before.generation in grew, f"{group_id}: {before} -> {now}"
            assert now.is_delayed or is_due or not before.is_delayed, f"{group_id}: the delay is cut short"
            if before.state is COMPLETING and now.state is PREPARING:
                assigned = [m.member_id for m in groups[group_id].members.values() if m.assignment]
                assert not assigned, f"{group_id}: {assigned} own what was never given out"
            if now.state is COMPLETING and now.generation > before.generation:
                _begins(groups[group_id], decision, node.coordinator.settings.group_max_size)

    def _joined(
        self, node: Node, shard: int, request: JoinGroupRequest, answer: JoinGroupResponse, is_due: bool
    ) -> None:
        """All members of a generation are told the same leader and protocol, and the leader is told all
        members."""
        if answer.error_code != ErrorCode.NONE:
            return
        group = node.coordinator._shards[shard].groups[request.group_id]
        members = frozenset(map(identity, group.members))
        told = (identity(answer.leader), answer.protocol_name, members)
        group_id, generation_id = request.group_id, answer.generation_id
        generation = (group_id, self._deleted[group_id], self.terms[shard], generation_id)
        known = self._leaders.setdefault(generation, told)
        assert told == known, f"{group_id}: generation {generation_id} is told as {known} and as {told}"
        assert answer.protocol_name in {protocol.name for protocol in request.protocols}
        listed = [identity(member.member_id) for member in answer.members]
        assert len(listed) == len(set(listed)), f"{request.group_id}: a member is listed twice: {listed}"
        assert not listed or (members == set(listed) and answer.leader == answer.member_id)
        assert group.members[answer.member_id].protocols == Protocols.of(request.protocols), (
            "another subscription counts"
        )
        if group.state is STABLE:
            assert request.member_id != group.leader, "a leader joins to rebalance"
            assert answer.skip_assignment or answer.leader != answer.member_id, "assigned already"

    def _decided_to_sync(
        self, node: Node, shard: int, request: SyncGroupRequest, answer: SyncGroupResponse, is_due: bool
    ) -> None:
        expired = is_due and answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert not expired, f"{request.member_id} expired while its SyncGroup was parked"

    def _heard(
        self, node: Node, shard: int, request: HeartbeatRequest, answer: HeartbeatResponse, is_due: bool
    ) -> None:
        """A heartbeat is answered without an error only in the present generation. Its member has a whole
        session from the heartbeat's arrival, and the heartbeat is parked for a third of it at most."""
        if answer.error_code == ErrorCode.NONE:
            group = node.coordinator._shards[shard].groups[request.group_id]
            member = group.members[request.member_id]
            assert (group.state in (COMPLETING, STABLE), group.generation) == (True, request.generation_id)
            deadline_ms = node.deadline_ms(member.timer)
            assert deadline_ms is not None
            parked_ms = node.now_ms + member.session_timeout_ms - deadline_ms
            assert 0 <= parked_ms <= (member.session_timeout_ms // 3 if node.parks else 0)

    def _decided_to_commit(
        self, node: Node, shard: int, request: OffsetCommitRequest, answer: OffsetCommitResponse, is_due: bool
    ) -> None:
        """Members commit in their generation, and not between its join phase and its assignments."""
        if answer.topics[0].partitions[0].error_code == ErrorCode.NONE:
            group = node.coordinator._shards[shard].groups[request.group_id]
            generation = request.generation_id_or_member_epoch
            if generation < 0:
                assert group.state is EMPTY
            else:
                assert (group.state in (PREPARING, STABLE), group.generation) == (True, generation)

    def _decided_to_txn_commit(
        self,
        node: Node,
        shard: int,
        request: TxnOffsetCommitRequest,
        answer: TxnOffsetCommitResponse,
        is_due: bool,
    ) -> None:
        """A producer that names a member must name it in the present generation."""
        if (
            answer.topics[0].partitions[0].error_code == ErrorCode.NONE
            and request.generation_id_or_member_epoch >= 0
        ):
            group = node.coordinator._shards[shard].groups[request.group_id]
            assert group.generation == request.generation_id_or_member_epoch
            assert request.member_id in group.members

    # ---- each durable record

    def journaled(self, shard: int, entry: Entry) -> None:
        if isinstance(entry, EndTxnMarker):
            self._is_of_latest_epoch(shard, entry.producer_id, entry.producer_epoch)
            known = self._coordinator_epochs[shard, entry.producer_id]
            assert entry.coordinator_epoch >= known, f"{entry} is of a coordinator before {known}"
            self._coordinator_epochs[shard, entry.producer_id] = entry.coordinator_epoch
            self._transaction_ends(entry)
            return
        producer_id, producer_epoch = entry.producer
        if producer_id >= 0:
            self._is_of_latest_epoch(shard, producer_id, producer_epoch)
        for key_bytes, value_bytes in entry.records:
            self._recorded(shard, producer_id, key_bytes, value_bytes)

    def _is_of_latest_epoch(self, shard: int, producer_id: int, epoch: int) -> None:
        assert epoch >= self._epochs[shard, producer_id], f"producer {producer_id}: epoch {epoch} is old"
        self._epochs[shard, producer_id] = epoch

    def _transaction_ends(self, marker: EndTxnMarker) -> None:
        """A committed transaction's offset counts if no later one for its partition is in the journal."""
        for key, (place, value) in self.pending.pop(marker.producer_id, {}).items():
            if marker.committed and self._places.get(key, -1) < place:
                self._places[key], self.offsets[key] = place, value

    def _recorded(self, shard: int, producer_id: int, key_bytes: bytes, value_bytes: bytes | None) -> None:
        self._place += 1
        key = decode_key(key_bytes)
        value: Any = decode_value(key, value_bytes)
        self._shard_of[key.group] = shard
        if isinstance(value, OffsetCommitValue):
            self._kept.add((producer_id, (key.group, key.topic, key.partition), value.offset))
        if isinstance(key, OffsetCommitKey) and producer_id >= 0:
            self.pending[producer_id][key.group, key.topic, key.partition] = (self._place, value)
        elif isinstance(key, OffsetCommitKey):
            self._committed((key.group, key.topic, key.partition), value)
        elif value is None:
            self._is_deleted(key.group, self.groups.pop(key.group, None))
        else:
            self._generation_is_durable(key.group, self.groups.get(key.group), value)
            self.groups[key.group] = value
            if value.members:
                self._generations[key.group, value.generation] = self._lives[key.group], value
                for member in value.members:
                    given = self._given.setdefault((key.group, value.generation, member.member_id), set())
                    given.add(member.assignment)

    def _is_deleted(self, group_id: str, before: GroupMetadataValue | None) -> None:
        """A deleted group had no members, and leaves no offsets."""
        self._lives[group_id] += 1
        assert before is None or not before.members, f"{group_id} is deleted with its members"
        keys = [*self.offsets, *(key for pending in self.pending.values() for key in pending)]
        assert group_id not in {key[0] for key in keys}, f"{group_id} leaves offsets behind"

    def _committed(self, key: OffsetKey, value: OffsetCommitValue | None) -> None:
        if value is None:
            self.offsets.pop(key, None)
            self._places.pop(key, None)
            for pending in self.pending.values():
                pending.pop(key, None)
            return
        self._places[key] = self._place
        before = self.offsets.get(key)
        assert before is None or key[1] != MONOTONE_TOPIC or before.offset <= value.offset, (
            f"{key}: {value.offset} is committed after {before.offset if before else ''}"
        )
        self.offsets[key] = value

    def _generation_is_durable(
        self, group_id: str, before: GroupMetadataValue | None, now: GroupMetadataValue
    ) -> None:
        """Generations only grow, and each has one leader and one assignment."""
        everybody = [partition for member in now.members for partition in owned(member.assignment)]
        assert FOREIGN not in everybody, f"{group_id}: assigned by another than the leader: {now}"
        assert len(everybody) == len(set(everybody)), f"{group_id}: a partition is assigned twice: {now}"
        if now.members:
            assert now.leader in {member.member_id for member in now.members}
        if before is None or before.generation < now.generation:
            return
        assert (now.generation, *_plan(now)) == (before.generation, *_plan(before)), (
            f"{group_id}: {before} is followed by {now}"
        )

    # ---- each answer, as it leaves the broker

    def answered(self, request: Any, answer: Any) -> None:
        check = _ANSWERED.get(type(request))
        if check is not None:
            check(self, request, answer)

    def _synced(self, request: SyncGroupRequest, answer: SyncGroupResponse) -> None:
        if answer.error_code != ErrorCode.NONE:
            return
        assert (request.group_id, request.generation_id) in self._generations, f"{request} is not durable"
        life, stored = self._generations[request.group_id, request.generation_id]
        # A static member may have been replaced by records of the same append.
        given = self._given[request.group_id, request.generation_id, request.member_id]
        assert answer.assignment in given, f"told of {answer.assignment!r}, not durable"
        owners = self._owners[request.group_id, life, stored.generation]
        for partition in owned(answer.assignment):
            who = identity(request.member_id)
            owner = owners.setdefault(partition, who)
            assert owner == who, f"{request.group_id}: partition {partition} is owned by {owner} and {who}"

    def _commit_is_kept(self, request: OffsetCommitRequest, answer: OffsetCommitResponse) -> None:
        for topic, answered in zip(request.topics, answer.topics, strict=True):
            for partition, result in zip(topic.partitions, answered.partitions, strict=True):
                key = (request.group_id, topic.name, partition.partition_index)
                if result.error_code == ErrorCode.NONE:
                    kept = (-1, key, partition.committed_offset)
                    assert kept in self._kept, f"{kept} is acknowledged and not durable"

    def _commit_is_pending(self, request: TxnOffsetCommitRequest, answer: TxnOffsetCommitResponse) -> None:
        for topic, answered in zip(request.topics, answer.topics, strict=True):
            for partition, result in zip(topic.partitions, answered.partitions, strict=True):
                if result.error_code == ErrorCode.NONE:
                    key = (request.group_id, topic.name, partition.partition_index)
                    assert (request.producer_id, key, partition.committed_offset) in self._kept

    def ended(self, shard: int, marker: EndTxnMarker, answer: ErrorCode) -> None:
        """An acknowledged marker has ended the transaction."""
        if answer == ErrorCode.NONE:
            left = {key for key in self.pending[marker.producer_id] if self._shard_of[key[0]] == shard}
            assert not left, f"{left} is pending although its transaction has ended"

    def _fetched_stable(self, request: StableOffsetFetch, answer: OffsetFetchResponseGroup) -> None:
        """A stable fetch refuses exactly what a transaction may still move; the rest is what is durable."""
        unstable = {key for pending in self.pending.values() for key in pending}
        for topic in answer.topics:
            for partition in topic.partitions:
                key = (request.group_id, topic.name, partition.partition_index)
                refused = partition.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
                assert refused == (key in unstable), f"{key} is refused: {refused}; {unstable} are unstable"
                value = None if refused else self.offsets.get(key)
                assert partition.committed_offset == (-1 if value is None else value.offset)

    def _fetched(self, request: OffsetFetchRequestGroup, answer: OffsetFetchResponseGroup) -> None:
        for topic in answer.topics:
            for partition in topic.partitions:
                value = self.offsets.get((request.group_id, topic.name, partition.partition_index))
                durable = -1 if value is None else value.offset
                assert partition.committed_offset == durable, (
                    f"{request.group_id}: fetched {partition.committed_offset} where {durable} is durable"
                )

    # ---- after each step

    def stepped(self, node: Node) -> None:
        node.is_touched = False
        assert node.wakes_in_time or not node.is_alive, f"{node.name} sleeps on"
        invariants.check(node)
        for shard in node.coordinator._shards.values():
            known = shard.hard_state.group_ids()
            assert shard.is_loading or set(known) <= shard.groups.keys(), "records without a group"
            for group in shard.groups.values():
                nobody_is_missing = group.initial_delay is None and group.has_all_members_joined
                assert group.state is not PREPARING or not nobody_is_missing, "all joined, and still wait"
                self._a_restart_would_restore(group, shard.hard_state.groups.get(group.group_id))

    def _a_restart_would_restore(self, group: ClassicGroup, stored: GroupMetadataValue | None) -> None:
        """The last record of a stable or empty group holds all that it needs after a restart."""
        if group.state is STABLE:
            assert stored is not None, f"{group.group_id} is stable without a record"
            live = {m.member_id: (m.group_instance_id, m.assignment) for m in group.members.values()}
            kept = {m.member_id: (m.group_instance_id, m.assignment) for m in stored.members}
            assert (group.generation, group.leader, live) == (stored.generation, stored.leader, kept)
        elif group.state is EMPTY and stored is not None:
            assert (group.generation, ()) == (stored.generation, stored.members)

    def shard_knows_what_is_durable(self, node: Node, shard: int) -> None:
        """With nothing in flight, the shard holds what the journal says."""
        hard_state = node.coordinator._shards[shard].hard_state
        of_shard = self._shard_of
        assert hard_state.groups == {
            group: value for group, value in self.groups.items() if of_shard[group] == shard
        }
        assert {
            (group, topic, partition): value
            for group, offsets in hard_state.offsets.items()
            for (topic, partition), value in offsets.items()
        } == {key: value for key, value in self.offsets.items() if of_shard[key[0]] == shard}
        assert {
            (producer_id, (group, topic, partition)): value
            for group, commits in hard_state.pending._commits.items()
            for (topic, partition), by_producer in commits.items()
            for producer_id, value in by_producer.items()
        } == {
            (producer_id, key): value if self._places.get(key, -1) < place else None
            for producer_id, pending in self.pending.items()
            for key, (place, value) in pending.items()
            if of_shard[key[0]] == shard
        }


def _begins(group: ClassicGroup, decision: Decision, most: int) -> None:
    """A generation begins with the members whose JoinGroup is answered; only static members may be absent."""
    told = {
        response.member_id
        for _, response in decision.replies
        if type(response) is JoinGroupResponse and response.error_code == ErrorCode.NONE
    }
    assert len(told) <= most, f"{group.group_id} is larger than group.max.size"
    assert group.leader in told, f"{group.group_id}: {group.leader} leads without knowing"
    for member in group.members.values():
        assert member.is_static or member.member_id in told, f"{member.member_id} has not joined"


def _plan(stored: GroupMetadataValue) -> tuple[str, dict[str, bytes]]:
    plan = {identity(member.member_id): member.assignment for member in stored.members}
    return identity(stored.leader or ""), plan


_DECIDED: dict[type, Any] = {
    JoinGroupResponse: Checks._joined,
    SyncGroupResponse: Checks._decided_to_sync,
    HeartbeatResponse: Checks._heard,
    OffsetCommitResponse: Checks._decided_to_commit,
    TxnOffsetCommitResponse: Checks._decided_to_txn_commit,
}
_ANSWERED: dict[type, Any] = {
    SyncGroupRequest: Checks._synced,
    OffsetCommitRequest: Checks._commit_is_kept,
    OffsetFetchRequestGroup: Checks._fetched,
    StableOffsetFetch: Checks._fetched_stable,
    TxnOffsetCommitRequest: Checks._commit_is_pending,
}
