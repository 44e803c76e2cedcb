"""The shell around the coordinator: it gives it time, makes its records durable, and delivers its replies.

A decision is carried out in three steps: its records are replayed, appended to the shard's journal, and when
they are durable its replies leave, as do those of later decisions of the same shard in their turn. So nobody
is ever told of something that a crash could take back. When an append fails the shard is dropped and loaded
again from the journal.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import uuid4

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.config import Config
from kshim.context import Clock, RequestContext
from kshim.coordinator.coordinator import Coordinator
from kshim.coordinator.decision import Caller, Decision, Record, Reply
from kshim.coordinator.refusals import GroupRequest, refuse
from kshim.coordinator.settings import Settings
from kshim.storage.interfaces import Journal, StorageError
from schemas.error_code import ErrorCode
from schemas.group_metadata_log import UnknownKey, decode_key, decode_value, encode_key, encode_value
from schemas.list_groups import ListGroupsRequest, ListGroupsResponse
from schemas.message import MalformedMessage

LONGEST_TURN_MS = 10
"""For how long to do what has come due before requests get their turn; the rest follows after them."""

logger = logging.getLogger("kshim.coordinator")


def new_coordinator(config: Config, partitions: int) -> Coordinator:
    """A coordinator with the limits of `config` and random member ids; it leads no shard yet."""
    settings = Settings(
        group_min_session_timeout_ms=config.group_min_session_timeout_ms,
        group_max_session_timeout_ms=config.group_max_session_timeout_ms,
        group_initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        group_max_size=config.group_max_size,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
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
    request: GroupRequest
    caller: Caller


@dataclass(slots=True, eq=False)
class _Lead:
    """One shard for as long as it is led here: for each append under way, the replies that wait for it."""

    shard: int
    unsettled: deque[list[Reply]] = field(default_factory=deque)


class Runtime:
    """Runs a coordinator over a journal. Everything happens on the reactor thread."""

    def __init__(self, coordinator: Coordinator, journal: Journal, clock: Clock) -> None:
        self._coordinator = coordinator
        self._journal = journal
        self._clock = clock
        self._leads: dict[int, _Lead] = {}
        self._waiting: dict[int, _Waiting] = {}
        self._tokens = count()
        self._call: Any = None
        self._call_at_ms = 0

    # ---- start and stop

    def start(self) -> None:
        """Lead every shard: load it from the journal. Raises StorageError."""
        for shard in range(self._coordinator.partitions):
            self._load(shard)
        self._wake_at_next_deadline()

    def stop(self) -> None:
        """Give every shard up; what is parked is answered NOT_COORDINATOR: clients look elsewhere."""
        for shard in list(self._leads):
            self._give_up(shard, self._now_ms())
        if self._call is not None:
            self._call.cancel()
            self._call = None

    # ---- requests

    def submit(self, context: RequestContext, request: GroupRequest) -> Any | Deferred[Any]:
        """The response to `request`, or a Deferred of it while it is parked or waits for the journal."""
        now_ms = self._now_ms()
        token = next(self._tokens)
        caller = Caller(token, context.api_version, context.client_id, context.client_host)
        decision = self._coordinator.handle(caller, request, now_ms)
        self._wake_at_next_deadline()
        lead = self._leads.get(self._coordinator.shard_for(request.group_id))
        replies = decision.replies
        answered = not decision.records and len(replies) == 1 and replies[0].token == token
        if answered and (lead is None or not lead.unsettled):
            return replies[0].response
        deferred: Deferred[Any] = Deferred()
        self._waiting[token] = _Waiting(deferred, request, caller)
        assert lead is not None
        self._carry_out(lead, decision, now_ms)
        return deferred

    def list_groups(self, request: ListGroupsRequest) -> ListGroupsResponse:
        """The groups of all shards that are led here."""
        return self._coordinator.list_groups(request)

    def topics_deleted(self, names: Collection[str]) -> None:
        """Forget what was committed for topics that are gone: another topic may come to have the name."""
        now_ms = self._now_ms()
        for shard in list(self._leads):
            decision = self._coordinator.delete_offsets(shard, names, now_ms)
            self._carry_out(self._leads[shard], decision, now_ms)

    # ---- decisions

    def _carry_out(self, lead: _Lead, decision: Decision, now_ms: int) -> None:
        for report in (*decision.rebalances, *decision.expired):
            logger.info("%s", report)
        if decision.records:
            self._coordinator.replay(lead.shard, decision.records)
            lead.unsettled.append(list(decision.replies))
            entries = [_encode(record) for record in decision.records]
            appended = self._journal.append(lead.shard, entries, now_ms)
            appended.addCallbacks(self._settled, self._failed, callbackArgs=(lead,), errbackArgs=(lead,))
        elif lead.unsettled:
            lead.unsettled[-1].extend(decision.replies)
        else:
            self._deliver(decision.replies)

    def _settled(self, _: None, lead: _Lead) -> None:
        if self._leads.get(lead.shard) is lead:
            self._deliver(lead.unsettled.popleft())

    def _failed(self, failure: Failure, lead: _Lead) -> None:
        """The journal did not take a record, what was decided since is void: begin with what is durable."""
        if self._leads.get(lead.shard) is not lead:
            return
        logger.error("__consumer_offsets-%d: not written, loading it again: %s", lead.shard, failure.value)
        now_ms = self._now_ms()
        self._give_up(lead.shard, now_ms)
        try:
            self._load(lead.shard)
        except StorageError as error:
            logger.error("__consumer_offsets-%d: cannot be loaded: %s", lead.shard, error)
        self._wake_at_next_deadline()

    def _deliver(self, replies: list[Reply] | tuple[Reply, ...]) -> None:
        for token, response in replies:
            waiting = self._waiting.pop(token, None)
            if waiting is not None:
                waiting.deferred.callback(response)

    # ---- shards

    def _load(self, shard: int) -> None:
        """Raises StorageError; the shard is not led here then, which is better than to serve a part of it."""
        now_ms = self._now_ms()
        self._coordinator.begin_load(shard)
        try:
            self._coordinator.replay(shard, _decoded(self._journal.load(shard), shard))
        except StorageError:
            self._coordinator.unload(shard, now_ms)
            raise
        lead = self._leads[shard] = _Lead(shard)
        self._carry_out(lead, self._coordinator.finish_load(shard, now_ms), now_ms)

    def _give_up(self, shard: int, now_ms: int) -> None:
        lead = self._leads.pop(shard)
        void = [reply.token for replies in lead.unsettled for reply in replies]
        self._deliver(self._coordinator.unload(shard, now_ms).replies)
        for token in void:
            waiting = self._waiting.get(token)
            if waiting is not None:
                answer = refuse(waiting.request, waiting.caller, ErrorCode.NOT_COORDINATOR)
                self._deliver([Reply(token, answer)])

    # ---- time

    def _now_ms(self) -> int:
        return int(self._clock.seconds() * 1000)

    def _wake_at_next_deadline(self) -> None:
        """Keep one call scheduled, for the next deadline or earlier."""
        deadline_ms = self._coordinator.next_deadline_ms()
        if deadline_ms is None or (self._call is not None and self._call_at_ms <= deadline_ms):
            return
        if self._call is not None:
            self._call.cancel()
        self._call_at_ms = deadline_ms
        self._call = self._clock.callLater(max(deadline_ms / 1000 - self._clock.seconds(), 0), self._advance)

    def _advance(self) -> None:
        self._call = None
        now_ms = self._now_ms()
        for shard, decision in self._coordinator.advance(now_ms):
            self._carry_out(self._leads[shard], decision, now_ms)
            if self._now_ms() - now_ms >= LONGEST_TURN_MS:
                break
        self._wake_at_next_deadline()


def _encode(record: Record) -> tuple[bytes, bytes | None]:
    return encode_key(record.key), None if record.value is None else encode_value(record.value)


def _decoded(entries: Iterator[tuple[bytes, bytes | None]], shard: int) -> Iterator[Record]:
    """Records from bytes. An unknown kind of key is skipped, as in Kafka; what is corrupt, a StorageError."""
    for key_bytes, value_bytes in entries:
        try:
            key = decode_key(key_bytes)
            if isinstance(key, UnknownKey):
                logger.warning("__consumer_offsets-%d: skipped a record with %s", shard, key)
                continue
            yield Record(key, decode_value(key, value_bytes))
        except MalformedMessage as error:
            raise StorageError(f"__consumer_offsets-{shard} holds a corrupt record: {error}") from error
