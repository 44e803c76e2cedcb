"""Transactions of the upstream that commit offsets here, by a coordinator and a shard by hand."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed

from kshim.callers import RequestContext
from kshim.configs.endpoint import Endpoint
from kshim.storage.interfaces import StorageError
from kshim.upstream.coordinators import UpstreamCoordinators
from kshim.upstream.link import LinkError
from kshim.upstream.transactions import TRIES, UpstreamTransactions
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from schemas.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from schemas.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from tests.api.harness import result

CONTEXT = RequestContext(4, "c", "/127.0.0.1", Endpoint("kshim", 9092))
ID, PRODUCER_ID, EPOCH, SHARD = "t", 7, 2, 5


def state(**changes: Any) -> TransactionState:
    usual = {
        "transactional_id": ID,
        "transaction_state": "Ongoing",
        "producer_id": PRODUCER_ID,
        "producer_epoch": EPOCH,
        "topics": (TopicData(topic="groups", partitions=(1, SHARD)),),
    }
    return TransactionState(**{**usual, **changes})


class Kafka:
    """The upstream, and the link to its only broker."""

    is_open = True

    def __init__(self) -> None:
        self.versions = {ApiKey.DESCRIBE_TRANSACTIONS: range(1)}
        self.described = state()
        self.added = ErrorCode.NONE
        self.found = ErrorCode.NONE
        self.is_down = False
        self.asked: list[Any] = []

    def ask(self, request: Any, **_: Any) -> Deferred[Any]:
        if isinstance(request, FindCoordinatorRequest):
            assert (request.key, request.key_type) == (ID, 1)
            found = Coordinator(key=ID, host="kafka", port=9092, error_code=self.found)
            return succeed(FindCoordinatorResponse(coordinators=(found,)))
        self.asked.append(request)
        if isinstance(request, DescribeTransactionsRequest):
            return succeed(DescribeTransactionsResponse(transaction_states=(self.described,)))
        partition = AddPartitionsToTxnPartitionResult(partition_index=SHARD, partition_error_code=self.added)
        added = AddPartitionsToTxnTopicResult(name="groups", results_by_partition=(partition,))
        return succeed(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=(added,)))

    def connect(self, address: Endpoint, timeout_s: float) -> Deferred[Any]:
        return fail(LinkError("it is down")) if self.is_down else succeed(self)


class Shards:
    """One shard. `markers` are in its log, and not read yet."""

    topic = "groups"

    def __init__(self) -> None:
        self.journal = self
        self.markers = 0
        self.last = -1
        self.is_known = False
        self.is_led = True
        self.looks = 0

    def prove_leadership(self, shard: int) -> Deferred[None]:
        self.looks += 1
        if not self.is_led:
            return fail(StorageError("the shard is not led here"))
        if self.markers:
            self.markers -= 1
            self.last += 1
            self.is_known = False
        return succeed(None)

    def last_marker(self, shard: int, producer_id: int) -> int:
        assert (shard, producer_id) == (SHARD, PRODUCER_ID)
        return self.last

    def is_open(self, shard: int, producer_id: int, producer_epoch: int) -> bool:
        assert (shard, producer_id, producer_epoch) == (SHARD, PRODUCER_ID, EPOCH)
        return self.is_known


@pytest.fixture
def kafka() -> Kafka:
    return Kafka()


@pytest.fixture
def shards() -> Shards:
    return Shards()


def ask(kafka: Kafka, shards: Shards, *, verify_only: bool = True) -> ErrorCode:
    """Ask as the function of TxnOffsetCommit does."""
    transactions = UpstreamTransactions(UpstreamCoordinators(kafka), shards)
    asked = AddPartitionsToTxnTransaction(
        transactional_id=ID,
        producer_id=PRODUCER_ID,
        producer_epoch=EPOCH,
        verify_only=verify_only,
        topics=(AddPartitionsToTxnTopic(name="__consumer_offsets", partitions=(SHARD,)),),
    )
    response = result(transactions.submit(CONTEXT, AddPartitionsToTxnRequest(transactions=(asked,))))
    (of_transaction,) = response.results_by_transaction
    (topic,) = of_transaction.topic_results
    assert topic.name == "__consumer_offsets"
    return ErrorCode(topic.results_by_partition[0].partition_error_code)


def test_a_transaction_that_writes_to_the_shard_may_commit_offsets(kafka: Kafka, shards: Shards) -> None:
    assert ask(kafka, shards) is ErrorCode.NONE
    assert kafka.asked == [DescribeTransactionsRequest(transactional_ids=(ID,))]
    assert shards.looks == 2, "before and after it was asked"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"error_code": ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"producer_id": 8}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"error_code": ErrorCode.NOT_COORDINATOR, "producer_id": 0}, ErrorCode.NOT_COORDINATOR),
        ({"producer_epoch": EPOCH + 1}, ErrorCode.PRODUCER_FENCED),
        ({"transaction_state": "PrepareCommit"}, ErrorCode.CONCURRENT_TRANSACTIONS),
        ({"transaction_state": "PrepareAbort"}, ErrorCode.CONCURRENT_TRANSACTIONS),
        ({"transaction_state": "CompleteCommit", "topics": ()}, ErrorCode.TRANSACTION_ABORTABLE),
        ({"topics": (TopicData(topic="groups", partitions=(1,)),)}, ErrorCode.TRANSACTION_ABORTABLE),
        ({"topics": (TopicData(topic="other", partitions=(SHARD,)),)}, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
def test_others_are_refused_as_by_the_coordinator(
    kafka: Kafka, shards: Shards, changes: dict[str, Any], error: ErrorCode
) -> None:
    kafka.described = state(**changes)
    assert ask(kafka, shards) is error


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.PRODUCER_FENCED])
def test_for_clients_that_leave_it_to_brokers_the_shard_is_added(
    kafka: Kafka, shards: Shards, error: ErrorCode
) -> None:
    kafka.added = error
    assert ask(kafka, shards, verify_only=False) is error
    (asked,) = kafka.asked
    assert asked.v3_and_below_topics == (AddPartitionsToTxnTopic(name="groups", partitions=(SHARD,)),)


def test_an_upstream_that_describes_no_transactions_does_not_verify_either(
    kafka: Kafka, shards: Shards
) -> None:
    kafka.versions = {}
    assert ask(kafka, shards) is ErrorCode.NONE
    assert isinstance(kafka.asked[0], AddPartitionsToTxnRequest)


def test_ends_of_earlier_transactions_are_read_before_the_coordinator_is_asked(
    kafka: Kafka, shards: Shards
) -> None:
    shards.markers = 1
    assert ask(kafka, shards) is ErrorCode.NONE
    assert len(kafka.asked) == 1


def test_a_transaction_that_has_ended_since_is_refused(kafka: Kafka, shards: Shards) -> None:
    """If the next one of the same epoch is under way by now, the offsets are none of its."""
    shards.markers = 2
    assert ask(kafka, shards) is ErrorCode.TRANSACTION_ABORTABLE


def test_with_an_epoch_for_each_transaction_the_coordinator_knows_which_one_it_is(
    kafka: Kafka, shards: Shards
) -> None:
    shards.markers = 2
    assert ask(kafka, shards, verify_only=False) is ErrorCode.NONE
    assert len(kafka.asked) == 2
    shards.markers = 1 + TRIES
    assert ask(kafka, shards, verify_only=False) is ErrorCode.CONCURRENT_TRANSACTIONS


def test_it_is_asked_once_a_transaction(kafka: Kafka, shards: Shards) -> None:
    """Whatever has ended the transaction that is known would be in the log."""
    shards.is_known = True
    assert ask(kafka, shards) is ErrorCode.NONE
    assert (kafka.asked, shards.looks) == ([], 1)
    shards.markers = 1
    assert ask(kafka, shards) is ErrorCode.NONE
    assert len(kafka.asked) == 1


def test_nobody_answers(kafka: Kafka, shards: Shards) -> None:
    kafka.found = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert ask(kafka, shards) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    kafka.found, kafka.is_down = ErrorCode.NONE, True
    assert ask(kafka, shards) is ErrorCode.NETWORK_EXCEPTION
    kafka.is_down, shards.is_led = False, False
    assert ask(kafka, shards) is ErrorCode.NOT_LEADER_OR_FOLLOWER
