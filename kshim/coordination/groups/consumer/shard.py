"""The consumer groups of one shard: finds the group of a request or a timer, and lets the rules decide."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from kshim.coordination.decision import Caller
from kshim.coordination.groups.classic_group import CONSUMER, ClassicGroup
from kshim.coordination.groups.consumer.awaited import waits_for
from kshim.coordination.groups.consumer.classic_member import classic_heartbeat, join, sync
from kshim.coordination.groups.consumer.describe import describe
from kshim.coordination.groups.consumer.environment import Environment
from kshim.coordination.groups.consumer.fencing import fence
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.heartbeat import Checked, check, heartbeat, leave
from kshim.coordination.groups.consumer.member import JOINS, Member, MemberState
from kshim.coordination.groups.consumer.membership import known_member
from kshim.coordination.groups.consumer.offsets import check_commit, check_txn_commit
from kshim.coordination.groups.consumer.recording import gives_way
from kshim.coordination.groups.consumer.refused import LONGEST_SHOWN, Refused
from kshim.coordination.groups.consumer.regexes import go_on_searching
from kshim.coordination.groups.consumer.reports import GroupConverted, MemberRefused, Refusals
from kshim.coordination.groups.consumer.requests import DescribeConsumerGroup, MemberHeartbeat
from kshim.coordination.groups.consumer.seen import see
from kshim.coordination.groups.consumer.states import GroupState
from kshim.coordination.groups.consumer.steering import steer
from kshim.coordination.groups.consumer.store import ConsumerGroups
from kshim.coordination.groups.consumer.targets import assign, assign_later, refresh
from kshim.coordination.groups.consumer.upgrade import convert, upgrade
from kshim.coordination.groups.consumer.waiting import changed, interval_ms, may_wait, park, stay, take
from kshim.coordination.groups.consumer.writing import OF_MEMBERS, Writing
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.expiry import is_old, looked_at_of
from kshim.coordination.groups.expiry_report import ExpiryReport
from kshim.coordination.groups.leave_group import leaving, left_members
from kshim.coordination.groups.offsets import NO_TIMESTAMP, Committed, too_long
from kshim.coordination.groups.parked import HEARTBEATS
from kshim.coordination.groups.pending_offsets import Partition
from kshim.coordination.groups.rebalance_record import Who
from kshim.coordination.groups.seen import SeenGroup
from kshim.coordination.groups.states import State
from kshim.coordination.groups.steering_requests import ExpireMember, FenceMember, ForceRebalance
from kshim.coordination.groups.timers import TimerKey, TimerKind, Timers
from kshim.coordination.groups.trigger import Gone
from kshim.coordination.groups.waiting import WaitsFor
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import NO_ID, TopicId
from schemas.messages.consumer_group_describe import DescribedGroup
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
)
from schemas.messages.delete_groups import DeletableGroupResult
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupResponse
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.list_groups import ListedGroup, ListGroupsRequest
from schemas.messages.offset_commit import OffsetCommitRequest
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from schemas.messages.txn_offset_commit import TxnOffsetCommitRequest

CONVERTS = "with group.protocol=consumer, which makes the group a consumer group"
TYPE = "consumer"


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
        """Give each member a session, and time to give up what it has still to give up. Compute a target that
        was due; and look at the topics of a group that has only classic members, whose heartbeats do not.
        """
        for group in self.groups.values():
            it = self._writing(draft, group)
            session_ms = self._environment.configs.session_timeout_ms(group.group_id)
            assign_later(it)
            if group.members and group.subscriptions.classic_members == len(group.members):
                it.arm(TimerKind.TARGET, "", 0)
            for member in group.members.values():
                it.arm(TimerKind.SESSION, member.member_id, session_ms)
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    it.arm(TimerKind.REVOCATION, member.member_id, member.rebalance_timeout_ms)

    def unload(self, draft: Draft) -> None:
        """Cancel the timers of all groups, and answer their parked heartbeats NOT_COORDINATOR."""
        for group in self.groups.values():
            it = self._writing(draft, group)
            for parked in group.parked.values():
                refusal = ConsumerGroupHeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
                draft.reply(parked.caller.token, refusal)
            group.parked.clear()
            gives_way(draft, group)
            for member_id in group.members:
                it.cancel_all(member_id)
            it.cancel(TimerKind.REGEX)
            it.cancel(TimerKind.TARGET)

    # ---- requests

    def heartbeat(self, draft: Draft, caller: Caller, asked: MemberHeartbeat) -> None:
        """See `heartbeat` and `waiting`."""
        request = asked.request
        try:
            it, response = self._heartbeat(draft, caller, asked)
        except Refused as refused:
            if request.member_epoch >= JOINS:
                who = _sender(caller, request.member_id, request.instance_id)
                self._report_refusal(draft, asked.group_id, who, refused)
            draft.reply(caller.token, _refusal(refused))
            return
        member_id = response.member_id
        assert member_id is not None
        self._answer_parked(it, member_id)
        stays = request.member_epoch >= JOINS
        if stays and asked.is_last and may_wait(it, request, response, asked.patience):
            park(it, caller, request, member_id, asked.visible, asked.patience)
        else:
            draft.reply(caller.token, response)
        self._release_changed(it)

    def release_heartbeat(self, draft: Draft, group_id: str, token: int) -> None:
        """Answer the heartbeat `token` now, if it is still parked."""
        group = self.groups.get(group_id)
        if group is None:
            return
        it = self._writing(draft, group)
        for member_id, parked in group.parked.items():
            if parked.caller.token == token:
                self._answer_parked(it, member_id)
                self._release_changed(it)
                return

    def _release_changed(self, it: Writing) -> None:
        """Answer the parked heartbeats that have something to say, if anything was written."""
        if it.draft.writes and it.group.parked:
            for member_id in changed(it):
                self._answer_parked(it, member_id)

    def _answer_parked(self, it: Writing, member_id: str) -> None:
        """Answer a member's parked heartbeat, if there is one, like one that comes now."""
        parked = take(it, member_id)
        if parked is None:
            return
        caller, request, visible, patience = parked
        it.releases = True
        try:
            known_member(it.group, member_id)
            checked = check(it, caller, request)
            response = heartbeat(it, checked, request, visible, interval_ms(it, patience))
        except Refused as refused:
            response = _refusal(refused)
        it.releases = False
        it.draft.reply(caller.token, response)

    def _heartbeat(
        self, draft: Draft, caller: Caller, asked: MemberHeartbeat
    ) -> tuple[Writing, ConsumerGroupHeartbeatResponse]:
        request, group_id = asked.request, asked.group_id
        group, classic = self.groups.get(group_id), self._classic.get(group_id)
        if group is not None and request.member_epoch < JOINS:
            it = self._writing(draft, group)
            return it, leave(it, request)
        if group is None and request.member_epoch != JOINS:
            raise _no_group(group_id, classic, joins_or_stays=request.member_epoch > JOINS)
        if classic is None:
            it = self._writing(draft, group or self._store.new_group(group_id))
            checked = check(it, caller, request, asked.names)
        else:
            it, checked = self._upgrade(draft, classic, caller, asked)
        return it, heartbeat(it, checked, request, asked.visible, interval_ms(it, asked.patience))

    def _upgrade(
        self, draft: Draft, classic: ClassicGroup, caller: Caller, asked: MemberHeartbeat
    ) -> tuple[Writing, Checked]:
        """Put a consumer group in the place of a classic one, if the request will not be refused."""
        request, names = asked.request, asked.names
        it = self._writing(draft, self._store.new_group(classic.group_id))
        if classic.state is State.EMPTY:
            checked = check(it, caller, request, names)
            draft.cancel_all(classic)
            draft.forget_group(classic)
        else:
            converted = convert(classic, draft.settings, self._environment.topics)
            checked = check(self._writing(draft, converted.group), caller, request, names)
            checked = checked._replace(rebalances=not converted.is_settled)
            upgrade(it, classic, converted)
            it.noted.clear()
            it.noted.detail = CONVERTS
            by = _sender(caller, checked.new.member_id, request.instance_id)
            members = len(converted.members)
            draft.report(GroupConverted(classic.group_id, True, classic.generation, members, by))
        del self._classic[classic.group_id]
        return it, checked

    def describe(self, request: DescribeConsumerGroup) -> DescribedGroup:
        """See `describe`."""
        group = self.groups.get(request.group_id)
        if group is None:
            classic = self._classic.get(request.group_id)
            refused = _no_group(request.group_id, classic, joins_or_stays=False)
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
        self._release_changed(it)
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
        """The groups that pass the request's filters; see `describe.list_groups` of classic groups."""
        states = {state.strip().lower() for state in request.states_filter}
        types = {type_.lower() for type_ in request.types_filter}
        if types and TYPE not in types:
            return
        for group in self.groups.values():
            if not states or group.state.lower() in states:
                yield ListedGroup(
                    group_id=group.group_id,
                    protocol_type=CONSUMER,
                    group_state=group.state,
                    group_type=TYPE,
                )

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
                who = _sender(caller, request.member_id, request.group_instance_id)
                self._report_refusal(draft, request.group_id, who, refused)
            answer = JoinGroupResponse(error_code=refused.error)
        draft.reply(caller.token, answer)
        self._release_changed(it)
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
        """Remove the members that an administrator names, all in one step."""
        group = self.groups[request.group_id]
        found = [(identity, _named(group, identity)) for identity in leaving(caller.api_version, request)]
        members = {each.member_id: each for _, each in found if isinstance(each, Member)}
        if members:
            it = self._writing(draft, group)
            it.noted.gone = _left(caller, found)
            fence(it, tuple(members.values()))
            self._release_changed(it)
        answers = [
            (identity, each if isinstance(each, ErrorCode) else ErrorCode.NONE) for identity, each in found
        ]
        draft.reply(caller.token, left_members(caller, answers))

    def check_commit(self, draft: Draft, caller: Caller, request: OffsetCommitRequest) -> ErrorCode:
        """See `check_commit`."""
        epoch = request.generation_id_or_member_epoch
        partitions = self._written(draft, request)
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
            self._written(draft, request),
        )

    def expire(
        self,
        draft: Draft,
        group_id: str,
        committed: Committed,
        pending: Collection[Partition],
        partitions: Iterable[Partition],
    ) -> None:
        """Like `expiry.expire`, if there is such a group: offsets expire only for topics that nobody
        subscribes to, some time after they were committed.
        """
        group = self.groups.get(group_id)
        if group is None:
            return
        looked_at = looked_at_of(committed, pending, partitions)
        retention_ms = draft.settings.offsets_retention_minutes * 60_000
        expired = {
            partition: value
            for partition, value in looked_at.items()
            if is_old(value, NO_TIMESTAMP, draft.now_ms, retention_ms)
            and partition[0] not in group.subscriptions
        }
        for topic, index in expired:
            draft.forget_offset(group_id, topic, index)
        is_deleted = group.state is GroupState.EMPTY and len(expired) == len(committed) and not pending
        if is_deleted:
            self._writing(draft, group).delete_group()
        if expired or is_deleted:
            draft.report(ExpiryReport(group_id, expired, is_deleted))

    # ---- time and topics

    def on_timer(self, draft: Draft, key: TimerKey) -> None:
        """Do the work of one timer, if its group and its member still exist."""
        group = self.groups.get(key.group_id)
        if group is None:
            return
        it = self._writing(draft, group)
        if key.kind is TimerKind.REGEX:
            go_on_searching(it)
        elif key.kind is TimerKind.TARGET:
            self._catch_up(it)
        elif key.kind is TimerKind.WAIT:
            self._answer_parked(it, key.member_id)
        elif key.member_id in group.members:
            member = group.members[key.member_id]
            if _is_overdue[key.kind](member):
                it.noted.gone = _GONE[key.kind]
                if key.kind is TimerKind.SESSION:
                    it.noted.heard_ms = it.now_ms - it.session_timeout_ms(member)
                fence(it, (member,))
        self._release_changed(it)

    def topic_changed(self, draft: Draft, topic: str) -> None:
        """Make the groups that subscribe to a topic look at it again, each in a decision of its own."""
        for group_id in self._store.subscribed_to(topic):
            group = self.groups[group_id]
            group.refresh_at = None
            self._writing(draft, group).arm(TimerKind.TARGET, "", 0)

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

    def _catch_up(self, it: Writing) -> None:
        """Look at the group's topics if they have changed, and compute the target if it is not the latest."""
        if it.group.needs_refresh(it.now_ms):
            refresh(it, is_bumped=False)
        assign(it)

    def _report_refusal(self, draft: Draft, group_id: str, who: Who, refused: Refused) -> None:
        """Report that a member of an existing group is refused, unless that was reported lately."""
        is_known = group_id in self.groups or group_id in self._classic
        name = who.member_id or who.client_id
        if is_known and self._refusals.is_new(group_id, name, refused.error, draft.now_ms):
            draft.report(MemberRefused(group_id, who, refused.error, refused.message or ""))

    def _written(
        self, draft: Draft, request: OffsetCommitRequest | TxnOffsetCommitRequest
    ) -> Iterator[tuple[TopicId, int]]:
        """The partitions whose offsets would be written: those whose metadata is not too long."""
        limit = draft.settings.offset_metadata_max_bytes
        for topic in request.topics:
            known = self._environment.topics.named(topic.name)
            topic_id = NO_ID if known is None else known.topic_id
            for partition in topic.partitions:
                if not too_long(partition.committed_metadata, limit):
                    yield topic_id, partition.partition_index

    def _writing(self, draft: Draft, group: ConsumerGroup) -> Writing:
        return Writing(draft, self._store, self._classic, self._environment, group)


def _sender(caller: Caller, member_id: str, instance_id: str | None) -> Who:
    return Who(member_id, caller.client_id, caller.client_host, instance_id)


def _refusal(refused: Refused) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=refused.error, error_message=refused.message)


def _no_group(group_id: str, classic: ClassicGroup | None, *, joins_or_stays: bool) -> Refused:
    name = group_id[:LONGEST_SHOWN]
    if classic is not None:
        message = f"Group {name} is not a consumer group."
    else:
        message = f"{'Consumer group' if joins_or_stays else 'Group'} {name} not found."
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _named(group: ConsumerGroup, identity: MemberIdentity) -> Member | ErrorCode:
    """The member that a LeaveGroup names, by its id, its instance id or both; else the error."""
    if identity.group_instance_id is None:
        return group.members.get(identity.member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    holder = group.static_member(identity.group_instance_id)
    if holder is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if identity.member_id and identity.member_id != holder.member_id:
        return ErrorCode.FENCED_INSTANCE_ID
    return holder


def _left(caller: Caller, found: Sequence[tuple[MemberIdentity, Member | ErrorCode]]) -> Gone:
    """How the members of a LeaveGroup go: by themselves, as they name their member ids, or by an
    administrator.
    """
    by_itself = all(
        identity.member_id and each.client_id == caller.client_id
        for identity, each in found
        if isinstance(each, Member)
    )
    return Gone.LEFT if by_itself else Gone.REMOVED


def _always(member: Member) -> bool:
    return True


def _has_not_revoked(member: Member) -> bool:
    return member.state is MemberState.UNREVOKED_PARTITIONS


_is_overdue: dict[TimerKind, Callable[[Member], bool]] = {
    TimerKind.SESSION: _always,
    TimerKind.REVOCATION: _has_not_revoked,
    TimerKind.REJOIN: _always,
    TimerKind.RESYNC: _always,
}
"""By timer of a member: a function that returns True if the member is to be removed."""

_GONE: dict[TimerKind, Gone] = {
    TimerKind.SESSION: Gone.EXPIRED,
    TimerKind.REVOCATION: Gone.UNREVOKED,
    TimerKind.REJOIN: Gone.EVICTED,
    TimerKind.RESYNC: Gone.SILENT,
}
"""By timer of a member: how it ceases to be a member."""
