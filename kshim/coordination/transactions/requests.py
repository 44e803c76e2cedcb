"""The requests about one transactional id, and the answer that refuses each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kshim.coordination.decision import Caller
from kshim.coordination.transactions.transaction import TopicPartition
from schemas.error_code import ErrorCode
from schemas.mapped import Mapped
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from schemas.messages.describe_transactions import TransactionState
from schemas.messages.end_txn import EndTxnRequest, EndTxnResponse
from schemas.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


class AddPartitions(NamedTuple):
    """One transaction of AddPartitionsToTxn, or the partition of the group in AddOffsetsToTxn."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    verify_only: bool = False
    """True if the request only asks whether the partitions are in the transaction."""
    transaction_version: int = 0
    """2 if the client gets a new epoch for each transaction (KIP-890), else 0."""


class DescribeTransaction(NamedTuple):
    """One transactional id of DescribeTransactions."""

    transactional_id: str


Request = InitProducerIdRequest | AddPartitions | EndTxnRequest | DescribeTransaction


def as_kept(request: Request) -> Request:
    """The request itself. No smaller copy is needed: none of these requests is parked for long."""
    return request


def refuse(request: Request, caller: Caller, error: ErrorCode) -> object:
    """The response that says `error` and nothing else."""
    match request:
        case InitProducerIdRequest():
            return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
        case AddPartitions():
            same = ((partition, error) for partition in request.partitions)
            return partition_results(request.transactional_id, same)
        case EndTxnRequest():
            return EndTxnResponse(error_code=error)
        case DescribeTransaction():
            return TransactionState(transactional_id=request.transactional_id, error_code=error)


def partition_results(
    transactional_id: str, errors: Iterable[tuple[TopicPartition, ErrorCode]]
) -> AddPartitionsToTxnResult:
    """The answer with the error of each partition; a partition that is named twice is answered twice."""
    topics: dict[str, list[tuple[int, ErrorCode]]] = {}
    for (topic, index), error in errors:
        topics.setdefault(topic, []).append((index, error))
    return AddPartitionsToTxnResult(
        transactional_id=transactional_id, topic_results=Mapped(_topic_result, tuple(topics.items()))
    )


def _topic_result(item: tuple[str, Sequence[tuple[int, ErrorCode]]]) -> AddPartitionsToTxnTopicResult:
    topic, errors = item
    return AddPartitionsToTxnTopicResult(name=topic, results_by_partition=Mapped(_partition_result, errors))


def _partition_result(item: tuple[int, ErrorCode]) -> AddPartitionsToTxnPartitionResult:
    index, error = item
    return AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The partition indexes of each topic; topics and indexes keep their order."""
    indexes: dict[str, list[int]] = {}
    for topic, index in partitions:
        indexes.setdefault(topic, []).append(index)
    return indexes


def sorted_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The sorted partition indexes of each topic; the topics are sorted too."""
    indexes = by_topic(partitions)
    return {topic: sorted(indexes[topic]) for topic in sorted(indexes)}
