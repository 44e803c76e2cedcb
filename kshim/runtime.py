"""The shell around the coordinator: it gives it time, makes its records durable, and delivers its replies.

A decision is carried out in three steps: its records are replayed, appended to the shard's journal, and when
they are durable its replies leave, as do those of later decisions of the same shard in their turn. So nobody
is ever told of something that a crash could take back. When an append fails the shard is dropped and loaded
again from the journal.

Each shard is led by one broker, or by none: `load` and `unload` say by whom. All brokers of a process share
one runtime.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import uuid4

from twisted.internet.defer import Deferred, fail, succeed
from twisted.python.failure import Failure

from kshim.alarm import LONGEST_TURN_MS, Alarm
from kshim.config import Config
from kshim.context import Clock, RequestContext
from kshim.coordinator.coordinator import Coordinator
from kshim.coordinator.decision import Caller, Decision, Record, Reply
from kshim.coordinator.refusals import GroupRequest, refuse
from kshim.coordinator.settings import Settings
from kshim.loading import Leader, Loading
from kshim.storage.interfaces import NO_PRODUCER, Journal, StorageError
from schemas.end_txn_marker import EndTxnMarker
from schemas.error_code import ErrorCode
from schemas.group_metadata_log import encode_key, encode_value
from schemas.list_groups import ListGroupsRequest, ListGroupsResponse

logger = logging.getLogger("kshim.coordinator")


def new_coordinator(config: Config, partitions: int) -> Coordinator:
    """A coordinator with the limits of `config` and random member ids; it leads no shard yet."""
    settings = Settings(
        group_min_session_timeout_ms=config.group_min_session_timeout_ms,
        group_max_session_timeout_ms=config.group_max_session_timeout_ms,
        group_initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        group_max_size=config.group_max_size,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        message_max_bytes=config.message_max_bytes,
        offsets_retention_minutes=config.offsets_retention_minutes,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
    )
    return Coordinator(settings, new_member_id, partitions)


def new_member_id(prefix: str) -> str:
    """Kafka's form of a member id: the client id or group instance id, a dash, a random UUID."""
    return f"{prefix}-{uuid4()}"


@dataclass(slots=True)
class _Waiting:
    """A request without an answer yet."""

    deferred: Deferred[Any]
    request: GroupRequest | EndTxnMarker
    caller: Caller


@dataclass(slots=True, eq=False)
class _Lead:
    """One shard for as long as it is led here: for each append under way, the replies that wait for it."""

    shard: int
    leader: Leader
    unsettled: deque[list[Reply]] = field(default_factory=deque)


class Runtime:
    """Runs a coordinator over a journal. Everything happens on the reactor thread."""

    def __init__(self, coordinator: Coordinator, journal: Journal, clock: Clock) -> None:
        self._coordinator = coordinator
        self._journal = journal
        self._clock = clock
        self._is_running = False
        self._leads: dict[int, _Lead] = {}
        self._loading: dict[int, Loading] = {}
        self._leader_epochs: dict[int, int] = {}
        self._in_flight: Counter[int] = Counter()
        """How many appends of each shard have not settled, be it led still or not."""
        self._waiting: dict[int, _Waiting] = {}
        self._tokens = count()
        self._alarm = Alarm(clock, coordinator.next_deadline_ms, self._do_due)

    # ---- start and stop

    def start(self, leaders: Mapping[int, Leader] | None = None) -> None:
        """Answer from now on, and load the shards that have a leader: all, of node 0, where none is given.

        Raises StorageError.
        """
        self._is_running = True
        if leaders is None:
            leaders = dict.fromkeys(range(self._coordinator.partitions), Leader())
        for shard, leader in leaders.items():
            self._leader_epochs[shard] = leader.leader_epoch
            loading = self._loading[shard] = Loading(shard, leader, self._coordinator, self._journal)
            self._replay(loading, lambda: False)
        self._alarm.set()

    def stop(self) -> None:
        """Give every shard up; what is parked is answered NOT_COORDINATOR: clients look elsewhere.

        What comes later is answered COORDINATOR_NOT_AVAILABLE.
        """
        self._is_running = False
        for shard in {*self._leads, *self._loading}:
            self._give_up(shard)
        self._alarm.cancel()

    # ---- requests

    def submit(self, context: RequestContext, request: GroupRequest) -> Any | Deferred[Any]:
        """The response to `request`, or a Deferred of it while it is parked or waits for the journal."""
        now_ms = self._now_ms()
        token = next(self._tokens)
        caller = Caller(token, context.api_version, context.client_id, context.client_host, context.node_id)
        if not self._is_running:
            return refuse(request, caller, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        decision = self._coordinator.handle(caller, request, now_ms)
        self._alarm.set()
        lead = self._leads.get(self._coordinator.shard_for(request.group_id))
        replies = decision.replies
        answered = not decision.records and len(replies) == 1 and replies[0].token == token
        if answered and (lead is None or not lead.unsettled):
            return replies[0].response
        return self._wait(lead, caller, request, decision, now_ms)

    def write_marker(self, shard: int, marker: EndTxnMarker) -> Deferred[ErrorCode]:
        """See `Groups.write_marker`."""
        now_ms = self._now_ms()
        caller = Caller(next(self._tokens), 0)
        decision = self._coordinator.end_transaction(shard, caller, marker)
        lead = self._leads.get(shard)
        if lead is None:
            return succeed(decision.replies[0].response)
        return self._wait(lead, caller, marker, decision, now_ms)

    def list_groups(self, context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
        """The groups of all shards that the broker leads."""
        if not self._is_running:
            return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self._coordinator.list_groups(request, context.node_id)

    def refusal(self, context: RequestContext, request: GroupRequest) -> ErrorCode:
        """See `Groups.refusal`."""
        if not self._is_running:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return self._coordinator.refusal(context.node_id, request)

    def shard_for(self, group_id: str) -> int:
        """The partition of __consumer_offsets that a group belongs to."""
        return self._coordinator.shard_for(group_id)

    def topics_deleted(self, names: Collection[str]) -> None:
        """Forget what was committed for topics that are gone: another topic may come to have the name."""
        now_ms = self._now_ms()
        for loading in self._loading.values():
            loading.deleted_topics.update(names)
        for shard in list(self._leads):
            decision = self._coordinator.delete_offsets(shard, names, now_ms)
            self._carry_out(self._leads[shard], decision, now_ms)

    # ---- decisions

    def _wait(
        self,
        lead: _Lead | None,
        caller: Caller,
        request: GroupRequest | EndTxnMarker,
        decision: Decision,
        now_ms: int,
    ) -> Deferred[Any]:
        """Carry a decision out, and answer the request when its reply may leave."""
        assert lead is not None, f"{request} is answered by nobody"
        deferred: Deferred[Any] = Deferred()
        self._waiting[caller.token] = _Waiting(deferred, request, caller)
        self._carry_out(lead, decision, now_ms)
        return deferred

    def _carry_out(self, lead: _Lead, decision: Decision, now_ms: int) -> None:
        for report in (*decision.rebalances, *decision.expired):
            logger.info("%s", report)
        if decision.records or decision.marker is not None:
            lead.unsettled.append(list(decision.replies))
            self._in_flight[lead.shard] += 1
            appended = self._append(lead.shard, decision, now_ms)
            appended.addCallbacks(self._settled, self._failed, callbackArgs=(lead,), errbackArgs=(lead,))
        elif lead.unsettled:
            lead.unsettled[-1].extend(decision.replies)
        else:
            self._deliver(decision.replies)

    def _append(self, shard: int, decision: Decision, now_ms: int) -> Deferred[None]:
        if decision.marker is not None:
            self._coordinator.replay_marker(shard, decision.marker)
            return self._journal.end_transaction(shard, decision.marker)
        try:
            entries = [_encode(record) for record in decision.records]
        except ValueError as error:
            return fail(StorageError(f"a record that cannot be written: {error}"))
        self._coordinator.replay(shard, decision.records, decision.producer)
        return self._journal.append(shard, entries, now_ms, producer=decision.producer or NO_PRODUCER)

    def _settled(self, _: None, lead: _Lead) -> None:
        if self._leads.get(lead.shard) is lead:
            self._deliver(lead.unsettled.popleft())
        self._landed(lead.shard)

    def _failed(self, failure: Failure, lead: _Lead) -> None:
        """The journal did not take a record, what was decided since is void: begin with what is durable."""
        shard = lead.shard
        if self._leads.get(shard) is lead:
            logger.error("__consumer_offsets-%d: not written, loading it again: %s", shard, failure.value)
            self._give_up(shard)
            self._begin_load(shard, lead.leader).served.addErrback(lambda _: None)
        self._landed(shard)

    def _landed(self, shard: int) -> None:
        """An append has settled, on which loading the shard again may wait."""
        self._in_flight[shard] -= 1
        loading = self._loading.get(shard)
        if loading is not None and loading.call is None:
            self._go_on_loading(loading)

    def _deliver(self, replies: list[Reply] | tuple[Reply, ...]) -> None:
        for token, response in replies:
            waiting = self._waiting.pop(token, None)
            if waiting is not None:
                waiting.deferred.callback(response)

    # ---- shards

    def load(self, shard: int, leader: Leader) -> Deferred[None]:
        """Let a broker lead `shard`: until all of it is known, requests are answered that it is loading.

        Fires when the shard is served, or is given up before; errbacks StorageError when it cannot be read,
        and is not led then. As in Kafka, a leader from before the present one is ignored, and one that leads
        already goes on.
        """
        now = self._leads.get(shard) or self._loading.get(shard)
        known = self._leader_epochs.get(shard, -1)
        if leader.leader_epoch < known or (now is not None and leader.leader_epoch == known):
            return succeed(None)
        self._leader_epochs[shard] = leader.leader_epoch
        if now is not None and now.leader.node_id == leader.node_id:
            now.leader = leader
            return succeed(None)
        self._give_up(shard)
        return self._begin_load(shard, leader).served

    def unload(self, shard: int, leader_epoch: int | None = None) -> None:
        """Let nobody lead `shard`: what it has parked and what is asked of it is answered NOT_COORDINATOR.

        With the epoch from which on somebody else leads, nothing happens where that has begun already.
        """
        if leader_epoch is None or leader_epoch > self._leader_epochs.get(shard, -1):
            self._give_up(shard)

    def _begin_load(self, shard: int, leader: Leader) -> Loading:
        loading = self._loading[shard] = Loading(shard, leader, self._coordinator, self._journal)
        self._go_on_loading(loading)
        return loading

    def _go_on_loading(self, loading: Loading) -> None:
        """Load for one turn, once nothing is under way that a former leader has appended."""
        loading.call = None
        if self._in_flight[loading.shard]:
            return
        until_s = self._clock.seconds() + LONGEST_TURN_MS / 1000
        try:
            if not self._replay(loading, lambda: self._clock.seconds() >= until_s):
                loading.call = self._clock.callLater(0, self._go_on_loading, loading)
        except StorageError as error:
            logger.error("__consumer_offsets-%d: cannot be loaded: %s", loading.shard, error)
            loading.served.errback(error)
        self._alarm.set()

    def _replay(self, loading: Loading, is_long_enough: Callable[[], bool]) -> bool:
        """Whether the shard is served now. Raises StorageError; it is not led here then, which is better than
        to serve a part of it.
        """
        shard, now_ms = loading.shard, self._now_ms()
        try:
            if not loading.replay(is_long_enough):
                return False
        except StorageError:
            del self._loading[shard]
            self._coordinator.unload(shard, now_ms)
            raise
        del self._loading[shard]
        lead = self._leads[shard] = _Lead(shard, loading.leader)
        self._carry_out(lead, self._coordinator.finish_load(shard, now_ms), now_ms)
        if loading.deleted_topics:
            decision = self._coordinator.delete_offsets(shard, loading.deleted_topics, now_ms)
            self._carry_out(lead, decision, now_ms)
        loading.served.callback(None)
        return True

    def _give_up(self, shard: int) -> None:
        """Let go of a shard that is led or loading; nothing happens to another."""
        lead, loading = self._leads.pop(shard, None), self._loading.pop(shard, None)
        if loading is not None:
            self._coordinator.unload(shard, self._now_ms())
            loading.cancel()
        if lead is None:
            return
        void = [reply.token for replies in lead.unsettled for reply in replies]
        self._deliver(self._coordinator.unload(shard, self._now_ms()).replies)
        for token in void:
            waiting = self._waiting.get(token)
            if waiting is not None:
                answer = refuse(waiting.request, waiting.caller, ErrorCode.NOT_COORDINATOR)
                self._deliver([Reply(token, answer)])

    # ---- time

    def _now_ms(self) -> int:
        return int(self._clock.seconds() * 1000)

    def _do_due(self, now_ms: int) -> Iterator[None]:
        for shard, decision in self._coordinator.advance(now_ms):
            self._carry_out(self._leads[shard], decision, now_ms)
            yield


def _encode(record: Record) -> tuple[bytes, bytes | None]:
    return encode_key(record.key), None if record.value is None else encode_value(record.value)
