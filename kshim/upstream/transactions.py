"""Commits of offsets in transactions of the upstream.

When a transaction ends, the upstream writes a marker to each of its partitions. So kshim adds the group's
shard, a partition of the journal, in place of a partition of __consumer_offsets (docs/decisions/027).
"""

from __future__ import annotations

from kshim.callers import RequestContext
from kshim.coordination.transactions.requests import partition_results
from kshim.storage.interfaces import StorageError
from kshim.upstream.coordinators import ANSWER_S, TRANSACTION, UpstreamCoordinators
from kshim.upstream.interfaces import GroupShards
from kshim.upstream.link import Link, LinkError
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from schemas.messages.describe_transactions import DescribeTransactionsRequest, TransactionState

ADD_PARTITIONS = 3
"""The newest version of AddPartitionsToTxn that clients may send."""
TRIES = 5
FIRST_ADD_OFFSETS_WITH_FENCED = 2
ENDING = ("PrepareCommit", "PrepareAbort")
ONGOING = "Ongoing"


def as_partition(request: AddOffsetsToTxnRequest, topic: str, shard: int) -> AddPartitionsToTxnRequest:
    """Return the request to send in place of AddOffsetsToTxn, in version ADD_PARTITIONS."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=request.transactional_id,
        v3_and_below_producer_id=request.producer_id,
        v3_and_below_producer_epoch=request.producer_epoch,
        v3_and_below_topics=(AddPartitionsToTxnTopic(name=topic, partitions=(shard,)),),
    )


def as_offsets(response: AddPartitionsToTxnResponse, api_version: int) -> AddOffsetsToTxnResponse:
    """Turn the upstream's response into the one to AddOffsetsToTxn; see `kshim.api.add_offsets_to_txn`."""
    error = error_of_partition(response)
    if error is ErrorCode.PRODUCER_FENCED and api_version < FIRST_ADD_OFFSETS_WITH_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return AddOffsetsToTxnResponse(throttle_time_ms=response.throttle_time_ms, error_code=error)


class UpstreamTransactions:
    """Asks the upstream's transaction coordinator when offsets are committed for a group. Implements
    `TransactionPartitions`.
    """

    def __init__(self, coordinators: UpstreamCoordinators, shards: GroupShards) -> None:
        self._coordinators = coordinators
        self._shards = shards

    async def submit(
        self, context: RequestContext, request: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse:
        """Add one partition of __consumer_offsets, which stands for a shard, to a transaction, or verify that
        it is in it.
        """
        (transaction,) = request.transactions
        (topic,) = transaction.topics
        (shard,) = topic.partitions
        try:
            error = await self._is_open(transaction, shard)
        except LinkError:
            error = ErrorCode.NETWORK_EXCEPTION
        except StorageError:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        result = partition_results(transaction.transactional_id, [((topic.name, shard), error)])
        return AddPartitionsToTxnResponse(results_by_transaction=(result,))

    async def _is_open(self, transaction: AddPartitionsToTxnTransaction, shard: int) -> ErrorCode:
        """Return NONE if the transaction is ongoing, includes the shard, and has no end in the shard's log
        yet.

        The log is read before and after the coordinator is asked. A client that adds its group itself first
        waits until the ends of its earlier transactions are in the log. So an end that appears while the
        coordinator is asked is the end of this transaction. A client that leaves the adding to brokers does
        not wait, but has a new epoch for each transaction. For such a client the coordinator is asked again.

        Raises LinkError, StorageError.
        """
        producer = transaction.producer_id, transaction.producer_epoch
        await self._shards.journal.prove_leadership(shard)
        if self._shards.is_open(shard, *producer):
            return ErrorCode.NONE  # the coordinator has agreed before
        for _ in range(TRIES):
            before = self._shards.last_marker(shard, transaction.producer_id)
            link = await self._coordinators.link(transaction.transactional_id, TRANSACTION)
            if isinstance(link, ErrorCode):
                return link
            error = await _ask(link, transaction, self._shards.topic, shard)
            if error is not ErrorCode.NONE:
                return error
            await self._shards.journal.prove_leadership(shard)
            if self._shards.last_marker(shard, transaction.producer_id) == before:
                return ErrorCode.NONE
            if transaction.verify_only:
                return ErrorCode.TRANSACTION_ABORTABLE
        return ErrorCode.CONCURRENT_TRANSACTIONS


async def _ask(link: Link, asked: AddPartitionsToTxnTransaction, topic: str, shard: int) -> ErrorCode:
    """Ask the coordinator whether the transaction includes the shard, or to add it. Only brokers may verify,
    so kshim reads the transaction's description instead. An upstream too old to describe transactions does
    not verify either.
    """
    if asked.verify_only and ApiKey.DESCRIBE_TRANSACTIONS in link.versions:
        described = DescribeTransactionsRequest(transactional_ids=(asked.transactional_id,))
        (state,) = (await link.ask(described, timeout_s=ANSWER_S)).transaction_states
        return verified(state, asked, topic, shard)
    added = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=asked.transactional_id,
        v3_and_below_producer_id=asked.producer_id,
        v3_and_below_producer_epoch=asked.producer_epoch,
        v3_and_below_topics=(AddPartitionsToTxnTopic(name=topic, partitions=(shard,)),),
    )
    return error_of_partition(await link.ask(added, newest=ADD_PARTITIONS, timeout_s=ANSWER_S))


def verified(
    state: TransactionState, asked: AddPartitionsToTxnTransaction, topic: str, shard: int
) -> ErrorCode:
    """Return what the coordinator would answer to a broker that verifies a partition of a transaction."""
    if state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND or (
        not state.error_code and state.producer_id != asked.producer_id
    ):
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if state.error_code:
        return ErrorCode(state.error_code)
    if state.producer_epoch != asked.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if state.transaction_state in ENDING:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    is_there = any(each.topic == topic and shard in each.partitions for each in state.topics)
    is_there = is_there and state.transaction_state == ONGOING
    return ErrorCode.NONE if is_there else ErrorCode.TRANSACTION_ABORTABLE


def error_of_partition(response: AddPartitionsToTxnResponse) -> ErrorCode:
    """Return the error of the only partition."""
    (topic,) = response.results_by_topic_v3_and_below
    (partition,) = topic.results_by_partition
    return ErrorCode(partition.partition_error_code)
