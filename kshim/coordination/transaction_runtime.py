"""The transaction coordinator of a broker: a `Runtime` over __transaction_state, and the markers.

When the outcome of a transaction is durable, each of its partitions gets its marker. When the last marker is
durable, one more decision completes the transaction. So a durable outcome is always carried out: after a
restart, the markers of unfinished transactions are written again.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from kshim.callers import RequestContext
from kshim.cluster import NO_LEADER, TRANSACTION_STATE_TOPIC, Cluster
from kshim.cluster.changes import Move
from kshim.configs.config import Config
from kshim.coordination.decision import Caller, Decision
from kshim.coordination.leads import Lead
from kshim.coordination.loading import Leader, Loader
from kshim.coordination.markers import Markers, MarkerTurns, WriteMarker
from kshim.coordination.runtime import Runtime
from kshim.coordination.transactions.coordinator import TransactionCoordinator
from kshim.coordination.transactions.decision import Ending
from kshim.coordination.transactions.requests import AddPartitions, DescribeTransaction, Request, refuse
from kshim.coordination.transactions.settings import Settings
from kshim.coordination.transactions.states import State
from kshim.storage.clock import Clock
from kshim.storage.interfaces import Log, StorageError
from kshim.storage.journal import LogJournal
from kshim.turns.promise import Answer, settled
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTransaction,
)
from schemas.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from schemas.messages.end_txn import EndTxnRequest
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.list_transactions import ListTransactionsRequest
from schemas.records.end_txn_marker import EndTxnMarker


class TransactionRuntime:
    """The transaction coordinator of all brokers of a process. Its topic is made when a client first needs
    it.
    """

    def __init__(
        self, cluster: Cluster, log: Log, config: Config, clock: Clock, loader: Loader | None = None
    ) -> None:
        self._cluster = cluster
        self._log = log
        self._clock = clock
        self._loader = loader or Loader(clock)
        self._settings = _settings(config)
        self._coordinator = TransactionCoordinator(self._settings, self._take_producer_id)
        """Leads no shard until its topic is made."""
        self._runtime: Runtime | None = None
        self._write_marker: WriteMarker | None = None
        self._marker_turns = MarkerTurns(self._loader.clock)
        self._spare_producer_id: int | None = None
        self._stopped = False

    # ---- start and stop

    def start(self, write_marker: WriteMarker) -> None:
        """Load the shards, if the topic exists, and finish the transactions that were ending. Raises
        StorageError.
        """
        self._write_marker = write_marker
        self._running()

    def stop(self) -> None:
        """Give up every shard; requests that wait for the journal are answered NOT_COORDINATOR."""
        self._stopped = True
        if self._runtime is not None:
            self._runtime.stop()

    def follow(self, moves: Iterable[Move]) -> None:
        """Load the shards that have a new leader, as after a restart, and unload those without one."""
        if self._runtime is None or self._stopped:
            return
        for topic, _, after in moves:
            if topic.name != TRANSACTION_STATE_TOPIC:
                continue
            if after.leader == NO_LEADER:
                self._runtime.unload(after.index, after.leader_epoch)
            else:
                leader = Leader(after.leader, after.leader_epoch)
                self._runtime.load(after.index, leader).addErrback(lambda _: None)  # already logged

    def _running(self) -> Runtime | None:
        """The runtime; None before its topic is made."""
        topic = self._cluster.topics.get(TRANSACTION_STATE_TOPIC)
        if self._runtime is None and topic is not None and not self._stopped:
            partitions = topic.partitions
            journal = LogJournal(self._log, [partition.partition_no for partition in partitions])
            self._coordinator = TransactionCoordinator(
                self._settings, self._take_producer_id, len(partitions)
            )
            self._runtime = Runtime(self._coordinator, journal, self._clock, self._end, self._loader)
            self._runtime.start(
                {
                    partition.index: Leader(partition.leader, partition.leader_epoch)
                    for partition in partitions
                    if partition.leader != NO_LEADER
                }
            )
        return self._runtime

    # ---- requests

    async def submit(self, context: RequestContext, request: Any) -> Any:
        """The response to a request about transactions, when it is durable.

        AddPartitionsToTxn, in the form of v4 and later, comes from brokers; the broker that coordinates the
        transaction answers it. The broker that was asked answers all other requests.
        """
        match request:
            case AddPartitionsToTxnRequest():
                asked = [self._ask_any(context, _add_partitions(each)) for each in request.transactions]
                results = [await settled(each) for each in asked]
                return AddPartitionsToTxnResponse(results_by_transaction=tuple(results))
            case DescribeTransactionsRequest():
                ids = request.transactional_ids
                described = [self._ask(context, DescribeTransaction(each)) for each in ids]
                states = [await settled(each) for each in described]
                return DescribeTransactionsResponse(transaction_states=tuple(states))
            case ListTransactionsRequest():
                self._running()
                return self._coordinator.list_transactions(request, context.node_id, self._now_ms())
            case InitProducerIdRequest() | EndTxnRequest() if self._spare_producer_id is None:
                try:
                    # The decision can take the id. If it does not, the id is kept for the next request.
                    self._spare_producer_id = await self._cluster.producer_ids.new()
                except StorageError:
                    return refuse(request, Caller(0), ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return await settled(self._ask(context, request))

    def _ask(self, context: RequestContext, request: Request) -> Answer[Any]:
        """The answer of the broker that was asked."""
        runtime = self._running()
        return runtime.submit(context, request) if runtime else self._refused(context, request)

    def _ask_any(self, context: RequestContext, request: Request) -> Answer[Any]:
        """The answer of the broker that coordinates the transaction."""
        runtime = self._running()
        if runtime is None:
            return self._refused(context, request)
        return runtime.submit_as_broker(context.api_version, request)

    def _refused(self, context: RequestContext, request: Request) -> object:
        """The answer of a coordinator that leads no shard."""
        (reply,) = self._coordinator.handle(Caller(0, context.api_version), request, self._now_ms()).replies
        return reply.response

    def _take_producer_id(self) -> int:
        producer_id, self._spare_producer_id = self._spare_producer_id, None
        assert producer_id is not None
        return producer_id

    # ---- markers

    def _end(self, lead: Lead, ending: Ending) -> None:
        """Write the markers of a transaction whose outcome is durable; then complete it."""
        assert self._runtime is not None
        assert self._write_marker is not None
        runtime, transaction = self._runtime, ending.transaction
        marker = EndTxnMarker(
            transaction.producer_id,
            transaction.producer_epoch,
            committed=transaction.state is State.PREPARE_COMMIT,
            coordinator_epoch=lead.leader.leader_epoch,
            timestamp_ms=self._now_ms(),
        )
        version = transaction.transaction_version
        write = partial(self._write_marker, marker=marker, transaction_version=version)
        is_wanted = partial(runtime.is_led, lead)

        def complete(shard: int, now_ms: int) -> Decision:
            return self._coordinator.complete(ending, now_ms)

        markers = Markers(
            ending.transactional_id, transaction.partitions, write, is_wanted, self._marker_turns
        )
        markers.done.addCallback(lambda _: runtime.decide(lead, complete))
        self._marker_turns.add(markers)

    @property
    def is_behind(self) -> bool:
        """True if work is due that has not been done."""
        return self._runtime is not None and self._runtime.is_behind

    def _now_ms(self) -> int:
        return int(self._clock.seconds() * 1000)


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
