"""One shard: the groups whose records are in one partition of `__consumer_offsets`.

A shard finds the group of a request, calls the module of that API, and returns its decision. The live groups
are made from the hard state once, when loading ends; from then on both change together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from kshim.coordination.decision import Caller, Decision, GroupRecord, Reply
from kshim.coordination.fencing import ProducerIdAndEpoch
from kshim.coordination.groups import describe, offsets, rebalance
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.consumer.environment import Environment
from kshim.coordination.groups.consumer.requests import DescribeConsumerGroup, MemberHeartbeat
from kshim.coordination.groups.consumer.shard import ConsumerShard
from kshim.coordination.groups.draft import Draft, Surroundings
from kshim.coordination.groups.expiry import expire
from kshim.coordination.groups.hard_state import HardState
from kshim.coordination.groups.heartbeat import heartbeat, heartbeat_that_waits
from kshim.coordination.groups.join_group import join_group, refuse_join
from kshim.coordination.groups.leading import begin_to_lead, give_up
from kshim.coordination.groups.leave_group import leave_group, unknown_members
from kshim.coordination.groups.parked import HEARTBEATS, release_heartbeat
from kshim.coordination.groups.pending_offsets import Partition
from kshim.coordination.groups.refusals import DeleteGroup, DescribeGroup, WaitingHeartbeat
from kshim.coordination.groups.seen import SeenGroup, see
from kshim.coordination.groups.states import ANSWERS, State
from kshim.coordination.groups.static_member import report_fenced
from kshim.coordination.groups.steering import steer
from kshim.coordination.groups.steering_requests import ExpireMember, FenceMember, ForceRebalance
from kshim.coordination.groups.stored_records import StoredRecords
from kshim.coordination.groups.sync_group import sync_group
from kshim.coordination.groups.timers import OF_CONSUMER_GROUPS, AnyTimer, ShardTimer, TimerKind
from kshim.coordination.groups.waiting import WaitsFor, waits_for
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import GroupMetadataKey, GroupMetadataValue
from schemas.messages.delete_groups import DeletableGroupResult
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest
from schemas.messages.leave_group import LeaveGroupRequest
from schemas.messages.list_groups import ListedGroup, ListGroupsRequest
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupResponse

MOST_OFFSETS = 1_000
"""How many offsets one step of an expiry run checks before requests get their turn: a few ms of work, if all
have expired. The offsets of a large group are divided among steps; the last step deletes the group.
"""

_NO_OFFSETS: offsets.Committed = {}


class Shard:
    """The groups of one partition. `operations` has the function for each request."""

    __slots__ = (
        "_stored",
        "_timer",
        "_unchecked",
        "consumer",
        "groups",
        "hard_state",
        "is_loading",
        "node_id",
        "number",
        "surroundings",
    )

    def __init__(
        self, number: int, node_id: int, surroundings: Surroundings, environment: Environment
    ) -> None:
        """node_id: the broker that leads the shard; the other brokers refuse requests for it."""
        self.number = number
        self.node_id = node_id
        self.surroundings = surroundings
        self._timer = ShardTimer(number)
        self._unchecked: Iterator[tuple[str, Sequence[Partition]]] | None = None
        """The groups and partitions that the present expiry run has still to check; None between runs."""
        self.hard_state = HardState()
        self._stored = StoredRecords(self.hard_state)
        self.groups: dict[str, ClassicGroup] = {}
        """The classic groups; `consumer` has the others. No id is in both."""
        self.consumer = ConsumerShard(self.hard_state.consumer, self.groups, environment)
        self.is_loading = True

    # ---- loading and unloading

    def load(
        self, records: Iterable[tuple[bytes, bytes | None]], producer: ProducerIdAndEpoch | None
    ) -> list[bytes]:
        """See `StoredRecords`."""
        return self._stored.replay(records, producer)

    def replay(self, records: Iterable[GroupRecord], producer: ProducerIdAndEpoch | None) -> None:
        """Apply records to the state that survives a restart; see `HardState`."""
        self.hard_state.replay(records, producer)

    def revive(self) -> Iterator[None]:
        """Make live groups, with their members, from the stored ones; one step for each group."""
        for group_id, stored in self.hard_state.groups.items():
            if group_id not in self.groups:
                self.groups[group_id] = ClassicGroup.from_metadata(group_id, stored)
                yield

    def finish_load(self, now_ms: int) -> Decision:
        """Serve the groups from now on; see `leading`."""
        draft = Draft(self.number, self.surroundings, now_ms)
        for _ in self.revive():
            pass
        self.is_loading = False
        del self._stored
        self._schedule_expiry(draft)
        self.consumer.finish_load(draft)
        for group_id in self.hard_state.group_ids():
            if group_id in self.consumer.groups:
                continue
            group = self.groups.get(group_id)
            if group is None:
                group = self.groups[group_id] = ClassicGroup(group_id, now_ms)
            begin_to_lead(draft, group, self.hard_state.groups.get(group_id))
        return draft.decision()

    def unload(self, now_ms: int) -> Decision:
        """Give up the groups; see `leading`."""
        draft = Draft(self.number, self.surroundings, now_ms)
        draft.timers.cancel(self._timer)
        self.consumer.unload(draft)
        for group in self.groups.values():
            give_up(draft, group)
        self.groups.clear()
        return draft.decision()

    # ---- requests

    def join_group(self, caller: Caller, request: JoinGroupRequest, now_ms: int) -> Decision:
        """See `join_group`. A JoinGroup without a member id creates a missing group, and its
        record at once.
        """
        draft = Draft(self.number, self.surroundings, now_ms)
        group = self.groups.get(request.group_id)
        is_consumer = group is None and request.group_id in self.consumer.groups
        if is_consumer and self.consumer.join_group(draft, caller, request):
            return draft.decision()
        if group is None and request.member_id:
            refuse_join(draft, caller, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
            return draft.decision()
        if group is None:
            group = self.groups[request.group_id] = ClassicGroup(request.group_id, now_ms)
            draft.write(GroupMetadataKey(group=request.group_id), _empty_group(now_ms))
        join_group(draft, group, caller, request)
        return draft.decision()

    def sync_group(self, caller: Caller, request: SyncGroupRequest, now_ms: int) -> Decision:
        """See `sync_group`."""
        group = self.groups.get(request.group_id)
        draft = Draft(self.number, self.surroundings, now_ms)
        if group is None and request.group_id in self.consumer.groups:
            self.consumer.sync_group(draft, caller, request)
            return draft.decision()
        if group is None:
            return self.reply(caller, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        sync_group(draft, group, caller, request)
        return draft.decision()

    def heartbeat(self, caller: Caller, request: HeartbeatRequest, now_ms: int) -> Decision:
        """See `heartbeat`."""
        group = self.groups.get(request.group_id)
        if group is None:
            return self._heartbeat_elsewhere(caller, request, now_ms)
        error = heartbeat(self.surroundings.timers, now_ms, group, request)
        if error is ErrorCode.FENCED_INSTANCE_ID:
            draft = Draft(self.number, self.surroundings, now_ms)
            report_fenced(draft, group, request.member_id)
            draft.reply(caller.token, HEARTBEATS[error])
            return draft.decision()
        return self.reply(caller, HEARTBEATS[error])

    def heartbeat_that_waits(self, caller: Caller, request: WaitingHeartbeat, now_ms: int) -> Decision:
        """See `heartbeat_that_waits`."""
        group = self.groups.get(request.group_id)
        if group is None:
            return self._heartbeat_elsewhere(caller, request.request, now_ms)
        draft = Draft(self.number, self.surroundings, now_ms)
        heartbeat_that_waits(draft, group, caller, request.request)
        return draft.decision()

    def _heartbeat_elsewhere(self, caller: Caller, request: HeartbeatRequest, now_ms: int) -> Decision:
        """Answer a Heartbeat for a group that is no classic one."""
        if request.group_id not in self.consumer.groups:
            return self.reply(caller, HEARTBEATS[ErrorCode.UNKNOWN_MEMBER_ID])
        draft = Draft(self.number, self.surroundings, now_ms)
        self.consumer.classic_heartbeat(draft, caller, request)
        return draft.decision()

    def release_heartbeat(self, group_id: str, member_id: str, token: int, now_ms: int) -> Decision:
        """Answer the heartbeat `token` now, if it is still parked."""
        draft = Draft(self.number, self.surroundings, now_ms)
        group = self.groups.get(group_id)
        if group is not None and member_id in group.members:
            member = group.members[member_id]
            if member.parked_heartbeat == token:
                release_heartbeat(draft, group, member)
        return draft.decision()

    def leave_group(self, caller: Caller, request: LeaveGroupRequest, now_ms: int) -> Decision:
        """See `leave_group`."""
        group = self.groups.get(request.group_id)
        draft = Draft(self.number, self.surroundings, now_ms)
        if group is None and request.group_id in self.consumer.groups:
            self.consumer.leave_group(draft, caller, request)
            return draft.decision()
        if group is None:
            return self.reply(caller, unknown_members(caller, request))
        leave_group(draft, group, caller, request)
        return draft.decision()

    def describe_group(self, caller: Caller, request: DescribeGroup, now_ms: int) -> Decision:
        """See `describe`."""
        group = self.groups.get(request.group_id)
        if group is None:
            known = request.group_id in self.consumer.groups
            absent = describe.describe_absent(request.group_id, caller.api_version, is_of_another_kind=known)
            return self.reply(caller, absent)
        return self.reply(caller, describe.describe(group))

    def delete_group(self, caller: Caller, request: DeleteGroup, now_ms: int) -> Decision:
        """Delete a group with all its offsets, if it has no members."""
        draft = Draft(self.number, self.surroundings, now_ms)
        if request.group_id in self.consumer.groups:
            known = self.known(request.group_id)
            draft.reply(caller.token, self.consumer.delete_group(draft, request.group_id, known))
            return draft.decision()
        group = self.groups.get(request.group_id)
        answer = ANSWERS[ApiKey.DELETE_GROUPS][State.DEAD if group is None else group.state]
        error = answer if isinstance(answer, ErrorCode) else ErrorCode.NONE
        if group is not None and error is ErrorCode.NONE:
            del self.groups[request.group_id]
            draft.cancel_all(group)
            offsets.delete_group(draft, group, self.known(request.group_id))
        draft.reply(caller.token, DeletableGroupResult(group_id=request.group_id, error_code=error))
        return draft.decision()

    def consumer_heartbeat(self, caller: Caller, asked: MemberHeartbeat, now_ms: int) -> Decision:
        """See `consumer.heartbeat`."""
        draft = Draft(self.number, self.surroundings, now_ms)
        self.consumer.heartbeat(draft, caller, asked)
        return draft.decision()

    def release_member_heartbeat(self, group_id: str, token: int, now_ms: int) -> Decision:
        """See `ConsumerShard.release_heartbeat`."""
        draft = Draft(self.number, self.surroundings, now_ms)
        self.consumer.release_heartbeat(draft, group_id, token)
        return draft.decision()

    def describe_consumer_group(
        self, caller: Caller, request: DescribeConsumerGroup, now_ms: int
    ) -> Decision:
        """See `consumer.describe`."""
        return self.reply(caller, self.consumer.describe(request))

    def topic_changed(self, topic: str, now_ms: int) -> None:
        """See `ConsumerShard.topic_changed`."""
        self.consumer.topic_changed(Draft(self.number, self.surroundings, now_ms), topic)

    def topics_created(self, now_ms: int) -> None:
        """See `ConsumerShard.topics_created`."""
        self.consumer.topics_created(Draft(self.number, self.surroundings, now_ms))

    def configs_changed(self, group_id: str, now_ms: int) -> None:
        """See `ConsumerShard.configs_changed`."""
        self.consumer.configs_changed(Draft(self.number, self.surroundings, now_ms), group_id)

    def steer(
        self, caller: Caller, request: ForceRebalance | ExpireMember | FenceMember, now_ms: int
    ) -> Decision:
        """See `steering`."""
        draft = Draft(self.number, self.surroundings, now_ms)
        group = self.groups.get(request.group_id)
        if group is not None:
            draft.reply(caller.token, steer(draft, group, request))
        else:
            draft.reply(caller.token, self.consumer.steer(draft, request))
        return draft.decision()

    def list_groups(self, request: ListGroupsRequest) -> Iterator[ListedGroup]:
        """The groups that pass the request's filters."""
        yield from describe.list_groups(self.groups.values(), request)
        yield from self.consumer.list_groups(request)

    def see(self, group_id: str) -> SeenGroup | None:
        """See `seen`."""
        group, committed = self.groups.get(group_id), self.committed(group_id)
        if group is None:
            return self.consumer.see(group_id, self.node_id, committed)
        return see(group, self.node_id, committed)

    def waits_for(self, group_id: str) -> WaitsFor | None:
        """See `waiting`."""
        group, timers = self.groups.get(group_id), self.surroundings.timers
        return self.consumer.waits_for(group_id, timers) if group is None else waits_for(group, timers)

    # ---- time

    def on_timer(self, key: AnyTimer, now_ms: int) -> Decision:
        """Do the work of one timer."""
        if isinstance(key, ShardTimer):
            return self.expire(now_ms)
        draft = Draft(self.number, self.surroundings, now_ms)
        if key.kind in OF_CONSUMER_GROUPS:
            self.consumer.on_timer(draft, key)
            return draft.decision()
        group = self.groups.get(key.group_id)
        if group is None:
            return Decision(self.number)
        if key.kind is TimerKind.MEMBER:
            rebalance.on_member_deadline(draft, group, key.member_id)
        elif key.kind is TimerKind.HEARTBEAT:
            release_heartbeat(draft, group, group.members[key.member_id])
        elif key.kind is TimerKind.JOIN:
            rebalance.on_join_deadline(draft, group)
        else:
            rebalance.on_sync_deadline(draft, group)
        return draft.decision()

    def expire(self, now_ms: int) -> Decision:
        """Take one step of an expiry run over all groups; see `expiry`.

        A step ends when it has checked more than MOST_OFFSETS; then the next step is due at once. After the
        last step the next run is due in `offsets.retention.check.interval.ms`.
        """
        draft = Draft(self.number, self.surroundings, now_ms)
        if self._unchecked is None:
            self._unchecked = self._to_check()
        checked = 0
        for group_id, partitions in self._unchecked:
            group, committed = self.groups.get(group_id), self.committed(group_id)
            pending = self.hard_state.pending.of_group(group_id)
            if group is not None and expire(draft, group, committed, pending, partitions):
                del self.groups[group_id]
                draft.cancel_all(group)
            if group is None:
                self.consumer.expire(draft, group_id, committed, pending, partitions)
            checked += 1 + len(partitions)
            if checked > MOST_OFFSETS:
                draft.timers.arm(self._timer, now_ms)
                return draft.decision()
        self._unchecked = None
        self._schedule_expiry(draft)
        return draft.decision()

    def _to_check(self) -> Iterator[tuple[str, Sequence[Partition]]]:
        """Every group with the partitions it has offsets for, at most MOST_OFFSETS of them at a time."""
        for group_id in (*self.groups, *self.consumer.groups):
            partitions = tuple(self.committed(group_id))
            for start in range(0, len(partitions) or 1, MOST_OFFSETS):
                yield group_id, partitions[start : start + MOST_OFFSETS]

    def _schedule_expiry(self, draft: Draft) -> None:
        interval_ms = draft.settings.offsets_retention_check_interval_ms
        draft.timers.arm(self._timer, draft.now_ms + interval_ms)

    def reply(self, caller: Caller, response: object) -> Decision:
        """The decision that answers a request, and changes nothing."""
        return Decision(self.number, (), (Reply(caller.token, response),))

    def committed(self, group_id: str) -> offsets.Committed:
        """The committed offsets of a group, by partition; empty if it has none."""
        return self.hard_state.offsets.get(group_id, _NO_OFFSETS)

    def known(self, group_id: str) -> Collection[Partition]:
        """The partitions for which a group has offsets, committed or pending, each once."""
        committed, pending = self.committed(group_id), self.hard_state.pending.of_group(group_id)
        return dict.fromkeys((*committed, *pending)) if pending else committed.keys()


def _empty_group(now_ms: int) -> GroupMetadataValue:
    """The record of a group that was just created."""
    return GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=now_ms, members=()
    )
