"""The consumer groups of one shard: finds the group of a request or a timer, and lets the rules decide."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from kshim.coordination.decision import Caller
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.consumer.awaited import waits_for
from kshim.coordination.groups.consumer.classic_member import classic_heartbeat, join, sync
from kshim.coordination.groups.consumer.describe import describe, list_groups
from kshim.coordination.groups.consumer.due import do_due
from kshim.coordination.groups.consumer.environment import Environment
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.heartbeat import Checked, check, heartbeat, leave
from kshim.coordination.groups.consumer.leading import begin_to_lead, give_up
from kshim.coordination.groups.consumer.leaving import leave_group
from kshim.coordination.groups.consumer.member import JOINS, LEAVES
from kshim.coordination.groups.consumer.offsets import check_commit, check_txn_commit, expire, written
from kshim.coordination.groups.consumer.quiet import Sender, quiet_answer, quiet_member
from kshim.coordination.groups.consumer.recording import who as who_is
from kshim.coordination.groups.consumer.refused import Refused, no_group, refusal, sender
from kshim.coordination.groups.consumer.regexes import search_new_topics
from kshim.coordination.groups.consumer.releasing import answer_parked, release_changed
from kshim.coordination.groups.consumer.reports import GroupConverted, MemberRefused, Refusals
from kshim.coordination.groups.consumer.requests import DescribeConsumerGroup, MemberHeartbeat
from kshim.coordination.groups.consumer.seen import see
from kshim.coordination.groups.consumer.states import GroupState
from kshim.coordination.groups.consumer.steering import steer
from kshim.coordination.groups.consumer.store import ConsumerGroups
from kshim.coordination.groups.consumer.targets import assign_later
from kshim.coordination.groups.consumer.upgrade import convert, upgrade
from kshim.coordination.groups.consumer.waiting import be_quiet, interval_ms, may_wait, park, stay
from kshim.coordination.groups.consumer.writing import OF_MEMBERS, Writing
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.offsets import Committed
from kshim.coordination.groups.parked import HEARTBEATS
from kshim.coordination.groups.pending_offsets import Partition
from kshim.coordination.groups.rebalance_record import Who
from kshim.coordination.groups.seen import SeenGroup
from kshim.coordination.groups.states import State
from kshim.coordination.groups.steering_requests import ExpireMember, FenceMember, ForceRebalance
from kshim.coordination.groups.timers import TimerKey, TimerKind, Timers
from kshim.coordination.groups.waiting import WaitsFor
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_describe import DescribedGroup
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from schemas.messages.delete_groups import DeletableGroupResult
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupResponse
from schemas.messages.leave_group import LeaveGroupRequest
from schemas.messages.list_groups import ListedGroup, ListGroupsRequest
from schemas.messages.offset_commit import OffsetCommitRequest
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from schemas.messages.txn_offset_commit import TxnOffsetCommitRequest

CONVERTS = "with group.protocol=consumer, which makes the group a consumer group"


class ConsumerShard:
    """The consumer groups of one partition of `__consumer_offsets`. Methods put what they do into a draft."""

    __slots__ = ("_classic", "_environment", "_refusals", "_store")

    def __init__(
        self, store: ConsumerGroups, classic_groups: dict[str, ClassicGroup], environment: Environment
    ) -> None:
        """classic_groups: those of the same shard. No id is in both."""
        self._store = store
        self._classic = classic_groups
        self._environment = environment
        self._refusals = Refusals()

    @property
    def groups(self) -> dict[str, ConsumerGroup]:
        """The groups by their ids."""
        return self._store.groups

    # ---- loading and unloading

    def finish_load(self, draft: Draft) -> None:
        """See `leading`."""
        for group in self.groups.values():
            begin_to_lead(self._writing(draft, group))

    def unload(self, draft: Draft) -> None:
        """See `leading`."""
        for group in self.groups.values():
            give_up(self._writing(draft, group))

    # ---- requests

    def answer_at_once(
        self, sender: Sender, request: ConsumerGroupHeartbeatRequest, timers: Timers, now_ms: int
    ) -> ConsumerGroupHeartbeatResponse | None:
        """Answer a heartbeat that says nothing and releases no other, of a client that cannot wait: it only
        moves the end of a session. Return None for the others, which `heartbeat` answers.
        """
        group_id = request.group_id
        group = self.groups.get(group_id)
        if group is None or group.to_look_at or request.member_id in group.parked:
            return None
        member = quiet_member(group, sender, request, now_ms)
        if member is None:
            return None
        configs = self._environment.configs
        session = TimerKey(TimerKind.SESSION, group_id, member.member_id)
        timers.arm(session, now_ms + configs.session_timeout_ms(group_id))
        return quiet_answer(member, configs.heartbeat_interval_ms(group_id))

    def heartbeat(self, draft: Draft, caller: Caller, asked: MemberHeartbeat) -> None:
        """See `heartbeat` and `waiting`."""
        request = asked.request
        try:
            it, response = self._heartbeat(draft, caller, asked)
        except Refused as refused:
            if request.member_epoch >= JOINS:
                who = sender(caller, request.member_id, request.instance_id)
                self._report_refusal(draft, asked.group_id, who, refused)
            draft.reply(caller.token, refusal(refused))
            return
        member_id = response.member_id
        assert member_id is not None
        answer_parked(it, member_id)
        stays = request.member_epoch >= JOINS
        if request.member_epoch == LEAVES:
            be_quiet(it)
        if stays and asked.is_last and may_wait(it, request, response, asked.patience):
            park(it, caller, request, member_id, asked.visible, asked.patience)
        else:
            draft.reply(caller.token, response)
        release_changed(it)

    def release_heartbeat(self, draft: Draft, group_id: str, token: int) -> None:
        """Answer the heartbeat `token` now, if it is still parked."""
        group = self.groups.get(group_id)
        if group is None:
            return
        it = self._writing(draft, group)
        for member_id, parked in group.parked.items():
            if parked.caller.token == token:
                answer_parked(it, member_id)
                release_changed(it)
                return

    def _heartbeat(
        self, draft: Draft, caller: Caller, asked: MemberHeartbeat
    ) -> tuple[Writing, ConsumerGroupHeartbeatResponse]:
        request, group_id = asked.request, asked.group_id
        group, classic = self.groups.get(group_id), self._classic.get(group_id)
        if group is not None and request.member_epoch < JOINS:
            it = self._writing(draft, group)
            return it, leave(it, request)
        if group is None and request.member_epoch != JOINS:
            raise no_group(group_id, classic, joins_or_stays=request.member_epoch > JOINS)
        if classic is None:
            it = self._writing(draft, group or self._store.new_group(group_id))
            quiet = quiet_member(it.group, caller, request, it.now_ms)
            if quiet is not None:
                it.restart_session(quiet)
                return it, quiet_answer(quiet, interval_ms(it, asked.patience))
            checked = check(it, caller, request, asked.prepared.names)
        else:
            it, checked = self._upgrade(draft, classic, caller, asked)
        return it, heartbeat(it, checked, request, asked.visible, interval_ms(it, asked.patience))

    def _upgrade(
        self, draft: Draft, classic: ClassicGroup, caller: Caller, asked: MemberHeartbeat
    ) -> tuple[Writing, Checked]:
        """Put a consumer group in the place of a classic one, if the request will not be refused."""
        request, names = asked.request, asked.prepared.names
        it = self._writing(draft, self._store.new_group(classic.group_id))
        if classic.state is State.EMPTY:
            checked = check(it, caller, request, names)
            draft.cancel_all(classic)
            draft.forget_group(classic)
        else:
            known = asked.prepared.subscriptions
            converted = convert(classic, draft.settings, self._environment.topics, known)
            checked = check(self._writing(draft, converted.group), caller, request, names)
            checked = checked._replace(rebalances=not converted.is_settled)
            upgrade(it, classic, converted)
            it.noted.clear()
            it.noted.detail = CONVERTS
            by = sender(caller, checked.new.member_id, request.instance_id)
            members = len(converted.members)
            draft.report(GroupConverted(classic.group_id, True, classic.generation, members, by))
        del self._classic[classic.group_id]
        return it, checked

    def describe(self, request: DescribeConsumerGroup) -> DescribedGroup:
        """See `describe`."""
        group = self.groups.get(request.group_id)
        if group is None:
            classic = self._classic.get(request.group_id)
            refused = no_group(request.group_id, classic, joins_or_stays=False)
            return DescribedGroup(
                group_id=request.group_id, error_code=refused.error, error_message=refused.message
            )
        topics, assignors = self._environment.topics, self._environment.assignors
        return describe(group, topics, assignors)

    def steer(self, draft: Draft, request: ForceRebalance | ExpireMember | FenceMember) -> ErrorCode:
        """See `steering`."""
        group = self.groups.get(request.group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        it = self._writing(draft, group)
        error = steer(it, request)
        release_changed(it)
        return error

    def see(self, group_id: str, node_id: int, committed: Committed) -> SeenGroup | None:
        """See `seen`."""
        group = self.groups.get(group_id)
        return None if group is None else see(group, self._environment, node_id, committed)

    def waits_for(self, group_id: str, timers: Timers) -> WaitsFor | None:
        """See `awaited`."""
        group = self.groups.get(group_id)
        return None if group is None else waits_for(group, self._environment, timers)

    def list_groups(self, request: ListGroupsRequest) -> Iterator[ListedGroup]:
        """The groups that pass the request's filters."""
        return list_groups(self.groups.values(), request)

    def delete_group(self, draft: Draft, group_id: str, known: Collection[Partition]) -> DeletableGroupResult:
        """Delete a group with all its offsets, if it has no members. known: the partitions of its offsets."""
        group = self.groups[group_id]
        if group.state is not GroupState.EMPTY:
            return DeletableGroupResult(group_id=group_id, error_code=ErrorCode.NON_EMPTY_GROUP)
        for topic, index in known:
            draft.forget_offset(group_id, topic, index)
        self._writing(draft, group).delete_group()
        return DeletableGroupResult(group_id=group_id)

    def join_group(self, draft: Draft, caller: Caller, request: JoinGroupRequest) -> bool:
        """Answer a classic member that joins a consumer group; see `classic_member`. Return False if the
        group is empty: then a classic group takes its place, unless the JoinGroup will be refused.
        """
        group = self.groups[request.group_id]
        it = self._writing(draft, group)
        if group.state is GroupState.EMPTY:
            if not request.member_id:
                it.delete_group()
            return False
        try:
            answer = join(it, caller, request)
        except Refused as refused:
            if refused.error is not ErrorCode.MEMBER_ID_REQUIRED:
                who = sender(caller, request.member_id, request.group_instance_id)
                self._report_refusal(draft, request.group_id, who, refused)
            answer = JoinGroupResponse(error_code=refused.error)
        draft.reply(caller.token, answer)
        release_changed(it)
        return True

    def sync_group(self, draft: Draft, caller: Caller, request: SyncGroupRequest) -> None:
        """Answer a classic member; see `classic_member`."""
        try:
            answer = sync(self._writing(draft, self.groups[request.group_id]), request, caller.api_version)
        except Refused as refused:
            answer = SyncGroupResponse(error_code=refused.error)
        draft.reply(caller.token, answer)

    def classic_heartbeat(self, draft: Draft, caller: Caller, request: HeartbeatRequest) -> None:
        """Answer a classic member; see `classic_member`."""
        it = self._writing(draft, self.groups[request.group_id])
        draft.reply(caller.token, HEARTBEATS[classic_heartbeat(it, request)])

    def leave_group(self, draft: Draft, caller: Caller, request: LeaveGroupRequest) -> None:
        """Remove the members that an administrator names; see `leaving`."""
        it = self._writing(draft, self.groups[request.group_id])
        answer = leave_group(it, caller, request)
        release_changed(it)
        draft.reply(caller.token, answer)

    def check_commit(self, draft: Draft, caller: Caller, request: OffsetCommitRequest) -> ErrorCode:
        """See `check_commit`."""
        epoch = request.generation_id_or_member_epoch
        partitions = written(draft.settings, self._environment.topics, request)
        return check_commit(
            self.groups[request.group_id], request.member_id, epoch, caller.api_version, partitions
        )

    def check_txn_commit(self, draft: Draft, caller: Caller, request: TxnOffsetCommitRequest) -> ErrorCode:
        """See `check_txn_commit`."""
        return check_txn_commit(
            self.groups[request.group_id],
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            caller.api_version,
            written(draft.settings, self._environment.topics, request),
        )

    def expire(
        self,
        draft: Draft,
        group_id: str,
        committed: Committed,
        pending: Collection[Partition],
        partitions: Iterable[Partition],
    ) -> None:
        """See `offsets.expire`; nothing happens if there is no such group."""
        group = self.groups.get(group_id)
        if group is not None:
            expire(self._writing(draft, group), committed, pending, partitions)

    # ---- time and topics

    def on_timer(self, draft: Draft, key: TimerKey) -> None:
        """See `due`; nothing happens if the group does not exist any more."""
        group = self.groups.get(key.group_id)
        if group is not None:
            do_due(self._writing(draft, group), key.kind, key.member_id)

    def topic_changed(self, draft: Draft, topic: str) -> None:
        """Make the groups that subscribe to a topic look at it again, each in a decision of its own."""
        for group_id in self._store.subscribed_to(topic):
            group = self.groups[group_id]
            group.refresh_at = None
            self._writing(draft, group).arm(TimerKind.TARGET, "", 0)
        self.topics_created(draft)

    def topics_created(self, draft: Draft) -> None:
        """Make the groups with regular expressions search the topics, if there are new ones."""
        for group_id in self._store.with_expressions:
            search_new_topics(self._writing(draft, self.groups[group_id]))

    def configs_changed(self, draft: Draft, group_id: str) -> None:
        """Answer the parked heartbeats of a group whose configs have changed, each in a decision of its own,
        so that its members learn their new interval and get their new session. A target that waits for its
        time may have another time now.
        """
        group = self.groups.get(group_id)
        if group is None:
            return
        it = self._writing(draft, group)
        for member_id in stay(group):
            it.arm(TimerKind.WAIT, member_id, 0)
        assign_later(it)

    def keep_members(self, timers: Timers, group_id: str, connected: Collection[str], by_ms: int) -> None:
        """Prepare a group for a move of time by `by_ms`: what its connected members have to do, they have to
        do that much later. Their clocks do not move.
        """
        if group_id in self.groups:
            for member_id in connected:
                for kind in OF_MEMBERS:
                    timers.postpone(TimerKey(kind, group_id, member_id), by_ms)

    def _report_refusal(self, draft: Draft, group_id: str, who: Who, refused: Refused) -> None:
        """Report that a member of an existing group is refused, unless that was reported lately."""
        is_known = group_id in self.groups or group_id in self._classic
        name = who.member_id or who.client_id
        if is_known and self._refusals.is_new(group_id, name, refused.error, draft.now_ms):
            holder = self._holder(group_id, who, refused)
            draft.report(MemberRefused(group_id, who, refused.error, refused.message or "", holder))

    def _holder(self, group_id: str, who: Who, refused: Refused) -> Who | None:
        """The member that has the instance id for which `who` is refused, if that is the reason."""
        group = self.groups.get(group_id)
        if group is None or refused.error is not ErrorCode.UNRELEASED_INSTANCE_ID:
            return None
        holder = group.static_member(who.group_instance_id)
        return None if holder is None else who_is(holder)

    def _writing(self, draft: Draft, group: ConsumerGroup) -> Writing:
        return Writing(draft, self._store, self._classic, self._environment, group)
