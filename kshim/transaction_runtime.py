"""The shell around the transaction coordinator: time, durability, markers and replies.

A decision is carried out in this order: its records are replayed and appended to the journal; when they are
durable its replies leave, and the transactions that it ends get their markers; when the last marker of one is
durable, that is one more decision. So nobody is told of an outcome that a crash could take back, and an
outcome that is durable is carried out whatever happens: what a restart finds half done is done again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.alarm import Alarm
from kshim.api.later import gather, if_not_stored
from kshim.cluster import NO_LEADER, TRANSACTION_STATE_TOPIC, Cluster, Partition
from kshim.cluster.leaders import Move
from kshim.config import Config
from kshim.context import Clock, RequestContext
from kshim.storage.interfaces import JournalBatch, Log, StorageError
from kshim.storage.journal import LogJournal
from kshim.transactions.coordinator import TransactionCoordinator
from kshim.transactions.decision import Decision, Ending, Record, Reply
from kshim.transactions.records import decode_record, encode_record
from kshim.transactions.requests import AddPartitions, Caller, DescribeTransaction, Request, refuse
from kshim.transactions.settings import Settings
from kshim.transactions.states import State
from kshim.txn_markers import Markers, WriteMarker
from schemas.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTransaction,
)
from schemas.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from schemas.end_txn import EndTxnRequest
from schemas.end_txn_marker import EndTxnMarker
from schemas.error_code import ErrorCode
from schemas.init_producer_id import InitProducerIdRequest
from schemas.list_transactions import ListTransactionsRequest
from schemas.message import MalformedMessage

logger = logging.getLogger("kshim.transactions")


@dataclass(slots=True)
class _Waiting:
    """A request without an answer yet."""

    deferred: Deferred[Any]
    request: Request


@dataclass(slots=True)
class _Unsettled:
    """What follows when an append is durable."""

    replies: list[Reply]
    endings: list[Ending]


@dataclass(slots=True, eq=False)
class _Lead:
    """One shard for as long as a broker leads it: for each append under way, what waits for it."""

    shard: int
    leader_epoch: int
    unsettled: deque[_Unsettled] = field(default_factory=deque)


class TransactionRuntime:
    """Runs a transaction coordinator over `__transaction_state`. Everything happens on the reactor thread."""

    def __init__(self, cluster: Cluster, log: Log, config: Config, clock: Clock) -> None:
        self._cluster = cluster
        self._log = log
        self._clock = clock
        self._settings = _settings(config)
        self._coordinator: TransactionCoordinator | None = None
        self._journal: LogJournal | None = None
        self._write_marker: WriteMarker | None = None
        self._spare_producer_id: int | None = None
        self._leads: dict[int, _Lead] = {}
        self._waiting: dict[int, _Waiting] = {}
        self._tokens = count()
        self._alarm = Alarm(clock, self._next_deadline_ms, self._do_due)
        self._stopped = False

    # ---- start and stop

    def start(self, write_marker: WriteMarker) -> None:
        """Lead every shard, if there are any yet, and finish what was being ended. Raises StorageError."""
        self._write_marker = write_marker
        self._lead()

    def stop(self) -> None:
        """Give every shard up; what waits for the journal is answered NOT_COORDINATOR."""
        self._stopped = True
        for shard in list(self._leads):
            self._give_up(shard)
        self._alarm.cancel()

    def follow(self, moves: Iterable[Move]) -> None:
        """Let transactions be coordinated where their partition is led now, as after a restart."""
        if self._coordinator is None or self._stopped:
            return
        for topic, _, after in moves:
            if topic.name == TRANSACTION_STATE_TOPIC:
                self._give_up(after.index)
                if after.leader != NO_LEADER:
                    self._load_or_log(after.index)
        self._alarm.set()

    def _lead(self) -> TransactionCoordinator | None:
        """The coordinator; None before its topic is made, which happens when it is first asked for."""
        topic = self._cluster.topics.get(TRANSACTION_STATE_TOPIC)
        if self._coordinator is None and topic is not None and not self._stopped:
            numbers = [partition.partition_no for partition in topic.partitions]
            self._journal = LogJournal(self._log, numbers)
            self._coordinator = TransactionCoordinator(self._settings, self._take_producer_id, len(numbers))
            for partition in topic.partitions:
                if partition.leader != NO_LEADER:
                    self._load(partition.index)
            self._alarm.set()
        return self._coordinator

    # ---- requests

    def submit(self, context: RequestContext, request: Any) -> Any | Deferred[Any]:
        """The response to a request about transactions, or a Deferred of it while it waits for the journal.

        AddPartitionsToTxn, in the form of v4 and later, is what brokers ask: of whichever broker coordinates
        the transaction. Everything else is for the one that was asked.
        """
        match request:
            case AddPartitionsToTxnRequest():
                asked = [self._decide(context, _add_partitions(each)) for each in request.transactions]
                return gather(
                    asked, lambda results: AddPartitionsToTxnResponse(results_by_transaction=tuple(results))
                )
            case DescribeTransactionsRequest():
                ids = request.transactional_ids
                described = [self._ask(context, DescribeTransaction(each)) for each in ids]
                return gather(
                    described, lambda states: DescribeTransactionsResponse(transaction_states=tuple(states))
                )
            case ListTransactionsRequest():
                led = [shard for shard in self._leads if self._partition(shard).leader == context.node_id]
                return self._coordinator_or_empty().list_transactions(request, led, self._now_ms())
            case InitProducerIdRequest() | EndTxnRequest() if self._spare_producer_id is None:
                return self._with_producer_id(context, request)
        return self._ask(context, request)

    def _ask(self, context: RequestContext, request: Request) -> Any | Deferred[Any]:
        """What the broker that was asked says."""
        coordinator = self._coordinator_or_empty()
        refusal = coordinator.static_error(request)
        if refusal is ErrorCode.NONE:
            lead = self._leads.get(coordinator.shard_for(request.transactional_id or ""))
            if lead is None or self._partition(lead.shard).leader != context.node_id:
                refusal = ErrorCode.NOT_COORDINATOR
        return self._decide(context, request) if refusal is ErrorCode.NONE else refuse(request, refusal)

    def _decide(self, context: RequestContext, request: Request) -> Any | Deferred[Any]:
        now_ms, token = self._now_ms(), next(self._tokens)
        coordinator = self._coordinator_or_empty()
        decision = coordinator.handle(Caller(token, context.api_version), request, now_ms)
        lead = self._leads.get(coordinator.shard_for(request.transactional_id or ""))
        if not decision.records and (lead is None or not lead.unsettled):
            (reply,) = decision.replies
            return reply.response
        assert lead is not None
        deferred: Deferred[Any] = Deferred()
        self._waiting[token] = _Waiting(deferred, request)
        self._carry_out(lead, decision, now_ms)
        return deferred

    def _partition(self, shard: int) -> Partition:
        return self._cluster.topics[TRANSACTION_STATE_TOPIC].partitions[shard]

    def _coordinator_or_empty(self) -> TransactionCoordinator:
        return self._lead() or TransactionCoordinator(self._settings, self._take_producer_id)

    def _with_producer_id(self, context: RequestContext, request: Any) -> Deferred[Any]:
        """Ask when there is a producer id that a decision can take; it stays for the next if it is not."""

        def given(producer_id: int) -> Any:
            self._spare_producer_id = producer_id
            return self._ask(context, request)

        def not_given() -> Any:
            return refuse(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)

        return self._cluster.new_producer_id().addCallbacks(given, if_not_stored(not_given))

    def _take_producer_id(self) -> int:
        producer_id, self._spare_producer_id = self._spare_producer_id, None
        assert producer_id is not None
        return producer_id

    # ---- decisions

    def _carry_out(self, lead: _Lead, decision: Decision, now_ms: int) -> None:
        assert self._coordinator is not None
        assert self._journal is not None
        if decision.records:
            self._coordinator.replay(lead.shard, decision.records)
            lead.unsettled.append(_Unsettled(list(decision.replies), list(decision.endings)))
            entries = [encode_record(record) for record in decision.records]
            appended = self._journal.append(lead.shard, entries, now_ms)
            appended.addCallbacks(self._settled, self._failed, callbackArgs=(lead,), errbackArgs=(lead,))
        elif lead.unsettled:
            lead.unsettled[-1].replies.extend(decision.replies)
        else:
            self._deliver(decision.replies)
            self._end(lead, decision.endings)

    def _settled(self, _: None, lead: _Lead) -> None:
        if self._is_led(lead):
            durable = lead.unsettled.popleft()
            self._deliver(durable.replies)
            self._end(lead, durable.endings)

    def _failed(self, failure: Failure, lead: _Lead) -> None:
        """The journal did not take a record, what was decided since is void: begin with what is durable."""
        if not self._is_led(lead):
            return
        name = f"{TRANSACTION_STATE_TOPIC}-{lead.shard}"
        logger.error("%s: not written, loading it again: %s", name, failure.value)
        self._give_up(lead.shard)
        self._load_or_log(lead.shard)

    def _deliver(self, replies: list[Reply] | tuple[Reply, ...]) -> None:
        for token, response in replies:
            waiting = self._waiting.pop(token, None)
            if waiting is not None:
                waiting.deferred.callback(response)

    # ---- markers

    def _end(self, lead: _Lead, endings: Iterable[Ending]) -> None:
        """Have the markers written of transactions whose outcome is durable."""
        assert self._write_marker is not None
        for ending in endings:
            transaction = ending.transaction
            marker = EndTxnMarker(
                transaction.producer_id,
                transaction.producer_epoch,
                committed=transaction.state is State.PREPARE_COMMIT,
                coordinator_epoch=lead.leader_epoch,
                timestamp_ms=self._now_ms(),
            )
            version = transaction.transaction_version
            write = partial(self._write_marker, marker=marker, transaction_version=version)
            markers = Markers(
                ending.transactional_id, write, self._clock, is_wanted=partial(self._is_led, lead)
            )
            markers.write(transaction.partitions).addCallback(self._complete, lead, ending)

    def _complete(self, _: None, lead: _Lead, ending: Ending) -> None:
        if self._is_led(lead):
            assert self._coordinator is not None
            now_ms = self._now_ms()
            self._carry_out(lead, self._coordinator.complete(ending, now_ms), now_ms)

    def _is_led(self, lead: _Lead) -> bool:
        return self._leads.get(lead.shard) is lead

    # ---- shards

    def _load(self, shard: int) -> None:
        """Raises StorageError; the shard is not led here then, which is better than to serve a part of it."""
        assert self._coordinator is not None
        assert self._journal is not None
        now_ms = self._now_ms()
        self._coordinator.begin_load(shard)
        try:
            self._coordinator.replay(shard, _decoded(self._journal.load(shard), shard))
        except StorageError:
            self._coordinator.unload(shard)
            raise
        lead = self._leads[shard] = _Lead(shard, self._partition(shard).leader_epoch)
        self._carry_out(lead, self._coordinator.finish_load(shard, now_ms), now_ms)

    def _load_or_log(self, shard: int) -> None:
        try:
            self._load(shard)
        except StorageError as error:
            logger.error("%s-%d: cannot be loaded: %s", TRANSACTION_STATE_TOPIC, shard, error)

    def _give_up(self, shard: int) -> None:
        """Does nothing where no broker leads the shard."""
        assert self._coordinator is not None
        lead = self._leads.pop(shard, None)
        if lead is None:
            return
        self._coordinator.unload(shard)
        for unsettled in lead.unsettled:
            for token, _ in unsettled.replies:
                answer = refuse(self._waiting[token].request, ErrorCode.NOT_COORDINATOR)
                self._deliver([Reply(token, answer)])

    # ---- time

    def _now_ms(self) -> int:
        return int(self._clock.seconds() * 1000)

    def _next_deadline_ms(self) -> int | None:
        return None if self._coordinator is None else self._coordinator.next_deadline_ms()

    def _do_due(self, now_ms: int) -> Iterator[None]:
        assert self._coordinator is not None
        for shard, decision in self._coordinator.advance(now_ms):
            for ending in decision.endings:
                logger.info("transactional id %s: aborted, its time is up", ending.transactional_id)
            self._carry_out(self._leads[shard], decision, now_ms)
            yield


def _settings(config: Config) -> Settings:
    return Settings(
        transaction_max_timeout_ms=config.transaction_max_timeout_ms,
        transactional_id_expiration_ms=config.transactional_id_expiration_ms,
        transaction_abort_timed_out_transaction_cleanup_interval_ms=(
            config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        ),
        transaction_remove_expired_transaction_cleanup_interval_ms=(
            config.transaction_remove_expired_transaction_cleanup_interval_ms
        ),
    )


def _add_partitions(transaction: AddPartitionsToTxnTransaction) -> AddPartitions:
    partitions = ((topic.name, index) for topic in transaction.topics for index in topic.partitions)
    return AddPartitions(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        tuple(partitions),
        transaction.verify_only,
        transaction_version=2,
    )


def _decoded(entries: Iterable[JournalBatch | EndTxnMarker], shard: int) -> Iterator[Record]:
    """Records from bytes. An unknown kind of key is skipped, as in Kafka; what is corrupt, a StorageError."""
    for entry in entries:
        if not isinstance(entry, JournalBatch):
            continue
        for key, value in entry.records:
            try:
                record = decode_record(key, value)
            except MalformedMessage as error:
                name = f"{TRANSACTION_STATE_TOPIC}-{shard}"
                raise StorageError(f"{name} holds a corrupt record: {error}") from error
            if record is not None:
                yield record
