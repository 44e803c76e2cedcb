"""Asks the transaction coordinator whether a producer may write to partitions in its transaction.

From Produce v12 on, the broker adds the partition to the transaction. An older client adds it itself, and the
broker only verifies that, so that no record gets into a transaction that has ended (KIP-890). The coordinator
is asked once per transaction and partition. After the first record, the log knows that the transaction is
open in the partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from kshim.callers import RequestContext
from kshim.cluster.changes import TopicPartition
from kshim.configs.config import Config
from kshim.coordination.interfaces import Transactions
from kshim.coordination.transactions.requests import by_topic
from kshim.producing.appends import ProducerAppends
from kshim.producing.rules import Verification
from kshim.storage.clock import Clock, after
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from schemas.records.batch import RecordBatchHeader

FIRST_VERSION_WITH_ABORTABLE = 11
FIRST_VERSION_THAT_ADDS = 12

RETRIABLE = {
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
"""The coordinator's errors that clients do not expect in a Produce response, and must be replaced."""


class TransactionalBatch(NamedTuple):
    """A transactional batch and its partition."""

    topic_name: str
    partition_index: int
    partition_no: int
    header: RecordBatchHeader


class Verifying(Protocol):
    """The broker that asks its transaction coordinator."""

    @property
    def config(self) -> Config: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def producers(self) -> ProducerAppends: ...
    @property
    def transactions(self) -> Transactions: ...
    def now_ms(self) -> int: ...


class NotAllowed(NamedTuple):
    """The coordinator's reason for refusing a batch."""

    error_code: ErrorCode
    message: str


Verdict = Verification | NotAllowed | None
"""None: the transaction is open in this partition, so the coordinator need not be asked."""
Verdicts = Mapping[TopicPartition, Verdict]


async def verify(
    broker: Verifying, context: RequestContext, transactional_id: str, asked: Sequence[TransactionalBatch]
) -> Verdicts:
    """Return a verdict for each batch. All batches must have the same producer and epoch."""
    adds = context.api_version >= FIRST_VERSION_THAT_ADDS
    verdicts: dict[TopicPartition, Verdict] = {}
    for batch in asked:
        found = broker.producers.verification(
            batch.partition_no, batch.header, adds=adds, now_ms=broker.now_ms()
        )
        place = batch.topic_name, batch.partition_index
        if isinstance(found, Verification):
            verdicts[place] = found
        else:
            verdicts[place] = None if found is ErrorCode.NONE else NotAllowed(found, "a later epoch is known")
    wanted = [place for place, verdict in verdicts.items() if isinstance(verdict, Verification)]
    if not wanted:
        return verdicts
    header = asked[0].header
    request = _request(transactional_id, header.producer_id, header.producer_epoch, wanted, not adds)
    tries = _tries(broker) if adds else 1
    errors = await _ask(broker, context, request, tries)
    return {**verdicts, **_refusals(errors, context.api_version)}


def _tries(broker: Verifying) -> int:
    """The number of attempts while the previous transaction is still ending.

    The client's own retry would come later.
    """
    config = broker.config
    backoff_ms = max(1, config.add_partitions_to_txn_retry_backoff_ms)
    return 1 + config.add_partitions_to_txn_retry_backoff_max_ms // backoff_ms


def _request(
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    places: Sequence[TopicPartition],
    verify_only: bool,
) -> AddPartitionsToTxnRequest:
    topics = tuple(
        AddPartitionsToTxnTopic(name=name, partitions=tuple(indexes))
        for name, indexes in by_topic(places).items()
    )
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        verify_only=verify_only,
        topics=topics,
    )
    return AddPartitionsToTxnRequest(transactions=(transaction,))


Errors = Mapping[TopicPartition, ErrorCode]


async def _ask(
    broker: Verifying, context: RequestContext, request: AddPartitionsToTxnRequest, tries: int
) -> Errors:
    """Ask at most `tries` times, and return the error of each partition."""
    while True:
        errors = _errors(await broker.transactions.submit(context, request))
        tries -= 1
        if not tries or ErrorCode.CONCURRENT_TRANSACTIONS not in errors.values():
            return errors
        await after(broker.clock, broker.config.add_partitions_to_txn_retry_backoff_ms / 1000)


def _errors(response: AddPartitionsToTxnResponse) -> Errors:
    return {
        (topic.name, result.partition_index): ErrorCode(response.error_code or result.partition_error_code)
        for transaction in response.results_by_transaction
        for topic in transaction.topic_results
        for result in topic.results_by_partition
    }


def _refusals(errors: Errors, api_version: int) -> dict[TopicPartition, Verdict]:
    """The refused partitions, with errors that a Produce response may have."""
    return {
        place: _refusal(error, api_version) for place, error in errors.items() if error is not ErrorCode.NONE
    }


def _refusal(error: ErrorCode, api_version: int) -> NotAllowed:
    if error is ErrorCode.PRODUCER_FENCED:
        return NotAllowed(ErrorCode.INVALID_PRODUCER_EPOCH, "a later epoch is known")
    if error is ErrorCode.TRANSACTION_ABORTABLE and api_version < FIRST_VERSION_WITH_ABORTABLE:
        error = ErrorCode.INVALID_TXN_STATE
    if error in RETRIABLE or (
        error is ErrorCode.CONCURRENT_TRANSACTIONS and api_version < FIRST_VERSION_THAT_ADDS
    ):
        why = f"it is not known whether the partition is part of the transaction: {error.name}"
        return NotAllowed(ErrorCode.NOT_ENOUGH_REPLICAS, why)
    return NotAllowed(error, "the partition is not part of the transaction")
