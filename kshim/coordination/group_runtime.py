"""The group coordinator of a broker: a `Runtime` over __consumer_offsets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any
from uuid import uuid4

from twisted.internet.defer import Deferred

from kshim.callers import RequestContext
from kshim.callers.context import Membership
from kshim.cluster import uuid_text
from kshim.cluster.pause import Pause, no_pause
from kshim.configs.config import Config
from kshim.coordination.decision import Decision
from kshim.coordination.groups.consumer.checks import check_heartbeat
from kshim.coordination.groups.consumer.environment import (
    Environment,
    GroupConfigs,
    SameConfigs,
    Visible,
)
from kshim.coordination.groups.consumer.member import JOINS, LEAVES
from kshim.coordination.groups.consumer.refused import Refused
from kshim.coordination.groups.consumer.requests import MemberHeartbeat, Patience
from kshim.coordination.groups.consumer.topic_names import UNPREPARED, ManyNames, Prepared
from kshim.coordination.groups.consumer.topics import NoTopics, Topics
from kshim.coordination.groups.coordinator import Coordinator
from kshim.coordination.groups.leave_group import leaving
from kshim.coordination.groups.offsets import no_id
from kshim.coordination.groups.refusals import EndTransaction, GroupRequest, WaitingHeartbeat
from kshim.coordination.groups.seen import SeenGroup
from kshim.coordination.groups.settings import MigrationPolicy, Settings
from kshim.coordination.groups.shard_offsets import OffsetsOfGroup
from kshim.coordination.groups.waiting import WaitsFor
from kshim.coordination.leavers import Leavers
from kshim.coordination.loading import Loader
from kshim.coordination.runtime import Runtime
from kshim.storage.clock import Clock
from kshim.storage.interfaces import Journal
from kshim.turns.promise import Answer, Promise, settled
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import NO_ID, TopicId
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from schemas.messages.join_group import JoinGroupRequest
from schemas.messages.leave_group import LeaveGroupRequest
from schemas.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from schemas.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from schemas.records.end_txn_marker import EndTxnMarker


def new_coordinator(
    config: Config,
    partitions: int,
    record_bytes: int | None = None,
    topic_id_of: Callable[[str], TopicId] = no_id,
    topics: Topics | None = None,
    configs: GroupConfigs | None = None,
) -> Coordinator:
    """A coordinator with the limits of `config` and random member ids; it leads no shard yet.

    record_bytes: the most bytes that the journal takes at once; None stands for message.max.bytes.
    topic_id_of: see `Coordinator`. topics: those that members of consumer groups get; None stands for none.
    configs: settings that differ from group to group; None stands for those of `config`.
    """
    settings = Settings(
        group_min_session_timeout_ms=config.group_min_session_timeout_ms,
        group_max_session_timeout_ms=config.group_max_session_timeout_ms,
        group_initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        group_max_size=config.group_max_size,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        message_max_bytes=config.message_max_bytes if record_bytes is None else record_bytes,
        offsets_retention_minutes=config.offsets_retention_minutes,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
        group_consumer_session_timeout_ms=config.group_consumer_session_timeout_ms,
        group_consumer_heartbeat_interval_ms=config.group_consumer_heartbeat_interval_ms,
        is_consumer_interval_set="group.consumer.heartbeat.interval.ms" in config.given,
        group_consumer_max_size=config.group_consumer_max_size,
        group_consumer_assignors=tuple(config.group_consumer_assignors.split(",")),
        group_consumer_migration_policy=MigrationPolicy(config.group_consumer_migration_policy),
        group_consumer_regex_refresh_interval_ms=config.group_consumer_regex_refresh_interval_ms,
        group_consumer_assignment_interval_ms=config.group_consumer_assignment_interval_ms,
    )
    environment = Environment(
        configs or SameConfigs(settings),
        new_uuid_text,
        topics or NoTopics(),
        settings.group_consumer_assignors,
    )
    return Coordinator(settings, new_member_id, partitions, topic_id_of, environment)


def new_member_id(prefix: str) -> str:
    """A member id in Kafka's form: the client id or group instance id, a dash, and a random UUID."""
    return f"{prefix}-{uuid4()}"


def new_uuid_text() -> str:
    """A random UUID as Kafka writes it: 22 characters."""
    return uuid_text(uuid4())


FORGET_US = 5_000
"""How long one step that deletes offsets of deleted topics may take, in microseconds."""
FORGET_RECORDS = 500
"""The number of deleted offsets after which the next step waits until they are durable: a client's commit
would else wait for all of them."""


class GroupRuntime(Runtime):
    """Implements `kshim.coordination.interfaces.Groups`."""

    def __init__(
        self,
        coordinator: Coordinator,
        journal: Journal,
        clock: Clock,
        loader: Loader | None = None,
        announce: Callable[[object], None] | None = None,
        may_answer: Callable[[int], bool] | None = None,
    ) -> None:
        super().__init__(coordinator, journal, clock, loader=loader, announce=announce, may_answer=may_answer)
        self._groups = coordinator
        self._leavers = Leavers(self._real_clock, self._report)
        self.wanted_topics = coordinator.wanted_topics

    def submit(self, context: RequestContext, request: object) -> Answer[Any]:
        """See `Groups.submit`."""
        if isinstance(request, LeaveGroupRequest):
            self._watch_leaver(context, request)
        elif isinstance(request, JoinGroupRequest) and context.client is not None:
            self._leavers.joins(context.client, request.group_id, request.member_id)
        elif isinstance(request, HeartbeatRequest):
            self._watch_connection(context, request)
        return super().submit(context, request)

    def _report(self, report: object) -> None:
        """Add to the report what connections say, before it is logged and announced."""
        self._leavers.complete(report)
        super()._report(report)

    def _watch_connection(self, context: RequestContext, request: Membership) -> None:
        """Watch the connection of a member's heartbeat, if it is its first one there."""
        if context.client is not None and context.client.observer is None:
            self._leavers.speaks(context.client, request.group_id, request.member_id)

    def _watch_leaver(self, context: RequestContext, request: LeaveGroupRequest) -> None:
        """Look after the member that sends a LeaveGroup, if it names itself. O(named members)."""
        member = None if context.client is None else context.client.member
        if member is None or member.group_id != request.group_id:
            return
        for each in leaving(context.api_version, request):
            if each.member_id == member.member_id:
                self._leavers.left(context, member.group_id, member.member_id, each.reason or "")
                return

    def heartbeat(self, context: RequestContext, request: HeartbeatRequest) -> Answer[HeartbeatResponse]:
        """See `Groups.heartbeat`."""
        self._watch_connection(context, request)
        caller = self._caller(context)
        answer: Answer[HeartbeatResponse] = self._answer(caller, WaitingHeartbeat(request))
        if isinstance(answer, Promise):
            context.turn.watch(partial(self._release_heartbeat, request, caller.token))
        return answer

    def commit(self, context: RequestContext, request: OffsetCommitRequest) -> Answer[OffsetCommitResponse]:
        """See `Groups.commit`."""
        answer: Answer[OffsetCommitResponse] = self._answer(self._caller(context), request)
        return answer

    def member_heartbeat(
        self,
        context: RequestContext,
        request: ConsumerGroupHeartbeatRequest,
        visible: Visible,
        patience: Patience,
        prepared: Prepared = UNPREPARED,
    ) -> Answer[ConsumerGroupHeartbeatResponse]:
        """See `Groups.member_heartbeat`."""
        if patience is Patience.NONE and request.member_epoch > JOINS:
            at_once = self._answer_at_once(context, request)
            if at_once is not None:
                return at_once
        if self.is_running:
            try:
                version, assignors = context.api_version, self._groups.assignors
                check_heartbeat(request, version, assignors, are_names_checked=prepared.names is not None)
            except Refused as refused:
                return ConsumerGroupHeartbeatResponse(error_code=refused.error, error_message=refused.message)
        if request.member_epoch == LEAVES:
            self._leavers.left(context, request.group_id, request.member_id)
        elif request.member_epoch == JOINS and context.client is not None:
            self._leavers.joins(context.client, request.group_id, request.member_id)
        else:
            self._watch_connection(context, request)
        caller = self._caller(context)
        answer: Answer[ConsumerGroupHeartbeatResponse]
        is_last = not context.turn.fired
        answer = self._answer(caller, MemberHeartbeat(request, visible, patience, is_last, prepared))
        if patience is not Patience.NONE and is_last and isinstance(answer, Promise):
            context.turn.watch(partial(self._release_member_heartbeat, request.group_id, caller.token))
        return answer

    def _answer_at_once(
        self, context: RequestContext, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse | None:
        """Answer a heartbeat that decides nothing; return None for the others."""
        number = self._groups.shard_for(request.group_id)
        lead = self.shards.leads.get(number)
        if lead is None or not self._is_settled(lead):
            return None
        answer = self._groups.answer_at_once(number, context.node_id, context, request, self.now_ms())
        if answer is not None:
            self._watch_connection(context, request)
            self._alarm.set()
        return answer

    def _release_member_heartbeat(self, group_id: str, token: int) -> None:
        lead = self.shards.leads.get(self._groups.shard_for(group_id))
        if lead is not None:
            release = self._groups.release_member_heartbeat
            self.decide(lead, lambda shard, now_ms: release(shard, group_id, token, now_ms))

    def _release_heartbeat(self, request: HeartbeatRequest, token: int) -> None:
        lead = self.shards.leads.get(self._groups.shard_for(request.group_id))
        if lead is not None:
            release = self._groups.release_heartbeat
            self.decide(
                lead, lambda shard, now_ms: release(shard, request.group_id, request.member_id, token, now_ms)
            )

    async def write_marker(self, shard: int, marker: EndTxnMarker) -> ErrorCode:
        """See `Groups.write_marker`."""
        answer: Answer[ErrorCode] = self.submit_as_broker(0, EndTransaction(shard, marker))
        return await settled(answer)

    def apply_marker(
        self, shard: int, marker: EndTxnMarker, ends: Callable[[], Collection[bytes] | None]
    ) -> bool:
        """Apply the end of a transaction whose marker another writer has put into the log, and write the
        offsets that it changed; return as `Runtime.when_led` does.

        ends: called just before the marker is applied. It returns the keys of the offsets to write, or None
        if the shard is not led any more; then nothing happens.
        """

        def decide(number: int, now_ms: int) -> Decision:
            keys = ends()
            if keys is None:
                return Decision(number)
            self._groups.replay_marker(number, marker)
            return self._groups.keep_offsets(number, keys)

        return self.when_led(shard, decide)

    def keep_offsets(self, shard: int, keys: Collection[bytes]) -> bool:
        """Write the present values of offsets; return as `Runtime.when_led` does.

        keys: the keys of the offsets' records.
        """
        return self.when_led(shard, lambda number, _: self._groups.keep_offsets(number, keys))

    def list_groups(self, context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
        """The groups of all shards that the broker leads."""
        if not self.is_running:
            return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self._groups.list_groups(request, context.node_id)

    def refusal(self, context: RequestContext, request: GroupRequest) -> ErrorCode:
        """See `Groups.refusal`."""
        if not self.is_running:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self._groups.refusal(context.node_id, request)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self.shards.want(self.shard_for(request.group_id))
        return error

    def shard_for(self, group_id: str) -> int:
        """The partition of __consumer_offsets that a group belongs to."""
        return self._groups.shard_for(group_id)

    def large_subscriptions(self, group_id: str) -> list[bytes]:
        """See `Groups.large_subscriptions`."""
        return self._groups.large_subscriptions(group_id)

    def latest_large_set(self, group_id: str) -> ManyNames | None:
        """See `Groups.latest_large_set`."""
        return self._groups.latest_large_set(group_id)

    def waits_for(self, group_id: str) -> WaitsFor | None:
        """See `Groups.waits_for`."""
        return self._groups.waits_for(group_id)

    def topic_changed(self, name: str, change: str) -> None:
        """Note how a topic has changed, in words, for people who ask why groups rebalance."""
        self._groups.topic_changed(name, change, self.now_ms())
        self._alarm.set()

    def topics_created(self) -> None:
        """Make groups search for new topics that their regular expressions match."""
        self._groups.topics_created(self.now_ms())
        self._alarm.set()

    def group_configs_changed(self, group_ids: Collection[str]) -> None:
        """Make the new configs of groups act on their members now."""
        self._groups.group_configs_changed(group_ids, self.now_ms())
        self._alarm.set()

    def group_ids(self) -> list[str]:
        """See `Groups.group_ids`."""
        return self._groups.group_ids()

    def see(self, group_id: str) -> SeenGroup | None:
        """See `Groups.see`."""
        return self._groups.see(group_id)

    def keep_sessions(self, members: Iterable[tuple[str, str]], by_ms: int) -> None:
        """Keep members in their groups when time moves ahead by `by_ms`. members: pairs of group and member
        id.
        """
        self._groups.keep_sessions(members, self.now_ms(), by_ms)

    def hasten(self) -> None:
        """Answer now the requests that were due within moments, because time is about to be held."""
        if self.is_running:
            for _ in self.carry_out_each(self._groups.hasten(self.now_ms())):
                pass
            self._alarm.set()

    async def topics_deleted(self, names: Collection[str], pause: Pause = no_pause) -> None:
        """See `Groups.topics_deleted`."""
        await self._forget_topics(dict.fromkeys(names, NO_ID), pause)

    def forget_topics(self, topics: Mapping[str, TopicId], pause: Pause = no_pause) -> Deferred[None]:
        """Delete the offsets committed for deleted topics. topics: their ids by their names."""
        return Deferred.fromCoroutine(self._forget_topics(topics, pause))

    async def _forget_topics(self, topics: Mapping[str, TopicId], pause: Pause) -> None:
        unsettled = 0
        for shard in range(self._groups.partitions):
            while (found := await self._forget_topics_of(shard, topics, pause, unsettled)) is None:
                pass
            unsettled = found

    async def _forget_topics_of(
        self, shard: int, topics: Mapping[str, TopicId], pause: Pause, unsettled: int
    ) -> int | None:
        """Delete the offsets in one shard, in steps if it is led.

        unsettled: the number of offsets whose deletion nobody has waited for. Return that number as it is
        afterwards; None if the shard was given up meanwhile: then the caller has to try again.
        """

        def delete(known: Iterable[OffsetsOfGroup] | None, number: int, now_ms: int) -> Decision:
            nonlocal unsettled
            decision = self._groups.delete_offsets(number, topics, now_ms, known)
            unsettled += len(decision.records)
            return decision

        if (loading := self.shards.loading.get(shard)) is not None:
            loading.decisions.append(partial(delete, None))
            return unsettled
        lead = self.shards.leads.get(shard)
        if lead is None:
            return unsettled
        for known in self._groups.known_offsets(shard):
            await pause(FORGET_US)
            if not self.is_led(lead):
                return None
            self.decide(lead, partial(delete, known))
            if unsettled >= FORGET_RECORDS:
                unsettled = 0
                await self.settled(lead)
        return unsettled
