"""The APIs of transactions over the wire: the answers of each version, and what is checked beforehand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from kshim.answering import Broker
from kshim.callers import RequestContext
from kshim.cluster import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kshim.coordination.transaction_runtime import TransactionRuntime
from kshim.network.dispatch import API
from kshim.producing.markers import write_marker
from kshim.testing.wire import api_key_of
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from schemas.messages.describe_transactions import DescribeTransactionsRequest
from schemas.messages.end_txn import EndTxnRequest
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.list_transactions import ListTransactionsRequest
from schemas.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from schemas.records.batch import batches
from schemas.records.end_txn_marker import EndTxnMarker, decode_marker
from schemas.registry import decode_response, encode_response
from tests.api.harness import NoGroups, advance, context, create, later, new_broker, result

ID = "payments"


class SomeGroups(NoGroups):
    """Groups of which only the markers matter."""

    def __init__(self) -> None:
        super().__init__()
        self.markers: list[tuple[int, EndTxnMarker]] = []

    def shard_for(self, group_id: str) -> int:
        return len(group_id)

    async def write_marker(self, shard: int, marker: EndTxnMarker) -> ErrorCode:
        self.markers.append((shard, marker))
        return ErrorCode.NONE


class Transactions:
    """A broker with a topic of three partitions, and a producer with id 0 and epoch 0."""

    def __init__(self) -> None:
        broker = new_broker(transaction_state_log_num_partitions=5)
        runtime = TransactionRuntime(broker.cluster, broker.log, broker.config, broker.clock)
        self.groups = SomeGroups()
        self.broker: Broker = replace(broker, transactions=runtime, groups=self.groups)
        runtime.start(partial(write_marker, self.broker))
        result(broker.cluster.auto_create_topics([TRANSACTION_STATE_TOPIC]))
        self.topic = create(broker, "topic", 3)
        self.init()

    def ask(self, request: Any, version: int) -> Any:
        """The decoded answer."""
        api_key = api_key_of(request)
        asked: RequestContext = replace(context(version), node_id=self.broker.node_id)
        answer = later(API[api_key].function(self.broker, asked, request))
        advance(self.broker)
        response = result(answer)
        return decode_response(api_key, version, encode_response(api_key, version, 7, response))[1]

    def init(self, version: int = 5, **fields: Any) -> Any:
        request = InitProducerIdRequest(
            transactional_id=ID, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        )
        return self.ask(replace(request, **fields), version)

    def add(self, *names: str, version: int = 3, epoch: int = 0) -> dict[tuple[str, int], int]:
        """The error of each partition; "topic" stands for its partition 0, "topic/2" for partition 2."""
        wanted = tuple(
            AddPartitionsToTxnTopic(
                name=name.partition("/")[0], partitions=(int(name.partition("/")[2] or 0),)
            )
            for name in names
        )
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=ID,
            v3_and_below_producer_id=0,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=wanted,
            transactions=(
                AddPartitionsToTxnTransaction(
                    transactional_id=ID, producer_id=0, producer_epoch=epoch, topics=wanted
                ),
            ),
        )
        answer = self.ask(request, version)
        topics = (
            answer.results_by_transaction[0].topic_results
            if version >= 4
            else answer.results_by_topic_v3_and_below
        )
        return {
            (topic.name, each.partition_index): each.partition_error_code
            for topic in topics
            for each in topic.results_by_partition
        }

    def end(self, committed: bool = True, version: int = 5, epoch: int = 0) -> Any:
        request = EndTxnRequest(transactional_id=ID, producer_id=0, producer_epoch=epoch, committed=committed)
        return self.ask(request, version)

    def markers(self, index: int) -> list[EndTxnMarker]:
        """The markers in a partition of the topic."""
        data = self.broker.log.read(self.topic.partitions[index].partition_no, 0, 1 << 20)
        return [marker for batch in batches(data) if (marker := decode_marker(batch)) is not None]


@pytest.fixture
def transactions() -> Transactions:
    return Transactions()


def versions(api_key: ApiKey) -> list[int]:
    return list(API[api_key].versions)


# ---- versions without PRODUCER_FENCED are told INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("version", versions(ApiKey.INIT_PRODUCER_ID)[3:])
def test_init_producer_id_fences(transactions: Transactions, version: int) -> None:
    answer = transactions.init(version, producer_id=99, producer_epoch=0)
    expected = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (expected, -1, -1)


@pytest.mark.parametrize("version", versions(ApiKey.ADD_PARTITIONS_TO_TXN))
def test_add_partitions_fences(transactions: Transactions, version: int) -> None:
    expected = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert transactions.add("topic", version=version, epoch=5) == {("topic", 0): expected}


@pytest.mark.parametrize("version", versions(ApiKey.ADD_OFFSETS_TO_TXN))
@pytest.mark.parametrize("epoch", [0, 5])
def test_add_offsets(transactions: Transactions, version: int, epoch: int) -> None:
    request = AddOffsetsToTxnRequest(
        transactional_id=ID, producer_id=0, producer_epoch=epoch, group_id="group"
    )
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert transactions.ask(request, version).error_code == (fenced if epoch else ErrorCode.NONE)
    if not epoch:
        transactions.end(version=4)
        ((shard, marker),) = transactions.groups.markers
        assert (shard, marker.producer_epoch, marker.committed) == (len("group"), 0, True)


@pytest.mark.parametrize("version", versions(ApiKey.END_TXN))
def test_end_txn_fences(transactions: Transactions, version: int) -> None:
    expected = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    answer = transactions.end(version=version, epoch=5)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (expected, -1, -1)


# ---- partitions


@pytest.mark.parametrize("version", versions(ApiKey.ADD_PARTITIONS_TO_TXN))
def test_nothing_is_added_where_one_partition_does_not_exist(
    transactions: Transactions, version: int
) -> None:
    unknown, not_tried = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
    assert transactions.add("topic/1", "topic/3", "none", version=version) == {
        ("topic", 1): not_tried,
        ("topic", 3): unknown,
        ("none", 0): unknown,
    }
    described = transactions.ask(DescribeTransactionsRequest(transactional_ids=(ID,)), 0)
    assert described.transaction_states[0].transaction_state == "Empty"


@pytest.mark.parametrize("version", [0, 3])
def test_a_client_adds_no_internal_topic(transactions: Transactions, version: int) -> None:
    assert transactions.add("topic", TRANSACTION_STATE_TOPIC, "none", version=version) == {
        ("topic", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        (TRANSACTION_STATE_TOPIC, 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


@pytest.mark.parametrize("version", versions(ApiKey.END_TXN))
@pytest.mark.parametrize("committed", [False, True])
def test_each_partition_of_the_transaction_gets_its_marker(
    transactions: Transactions, version: int, committed: bool
) -> None:
    transactions.add("topic/0", "topic/2")
    answer = transactions.end(committed, version)
    bumped = int(version >= 5)
    assert answer.error_code == ErrorCode.NONE
    assert (answer.producer_id, answer.producer_epoch) == ((0, 1) if bumped else (-1, -1))
    marker = EndTxnMarker(0, bumped, committed, 0, transactions.broker.now_ms())
    assert [transactions.markers(index) for index in range(3)] == [[marker], [], [marker]]
    listed = transactions.ask(ListTransactionsRequest(), 2)
    expected = "CompleteCommit" if committed else "CompleteAbort"
    assert [each.transaction_state for each in listed.transaction_states] == [expected]


# ---- WriteTxnMarkers


def errors_of(answer: Any) -> list[tuple[int, list[tuple[str, list[tuple[int, int]]]]]]:
    return [
        (
            marker.producer_id,
            [
                (topic.name, [(part.partition_index, part.error_code) for part in topic.partitions])
                for topic in marker.topics
            ],
        )
        for marker in answer.markers
    ]


def marker_of(producer_id: int, epoch: int, *topics: tuple[str, tuple[int, ...]]) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=tuple(WritableTxnMarkerTopic(name=name, partition_indexes=which) for name, which in topics),
    )


@pytest.mark.parametrize(("producer_id", "epoch"), [(-1, -1), (-1, 0), (7, -1)])
def test_a_marker_without_a_producer_fails_the_request(
    transactions: Transactions, producer_id: int, epoch: int
) -> None:
    """If there is a partition to write it to."""
    nobody_s = marker_of(producer_id, epoch, ("topic", (0, 9)), ("nope", (0,)))
    answer = transactions.ask(WriteTxnMarkersRequest(markers=(marker_of(8, 0, ("topic", (0,))), nobody_s)), 1)
    failed, unknown = ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors_of(answer) == [
        (8, [("topic", [(0, failed)])]),
        (producer_id, [("topic", [(0, failed), (9, failed)]), ("nope", [(0, failed)])]),
    ]
    elsewhere = marker_of(producer_id, epoch, ("nope", (0,)))
    assert errors_of(transactions.ask(WriteTxnMarkersRequest(markers=(elsewhere,)), 1)) == [
        (producer_id, [("nope", [(0, unknown)])])
    ]


def test_every_producer_is_answered_once(transactions: Transactions) -> None:
    markers = (
        marker_of(7, 0, ("topic", (0,))),
        marker_of(8, 0),
        marker_of(7, 0, ("topic", (0,)), ("nope", (1,))),
    )
    answer = transactions.ask(WriteTxnMarkersRequest(markers=markers), 1)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors_of(answer) == [(7, [("topic", [(0, 0)]), ("nope", [(1, unknown)])])]


@pytest.mark.parametrize("version", versions(ApiKey.WRITE_TXN_MARKERS))
def test_markers_that_are_asked_for(transactions: Transactions, version: int) -> None:
    def topic(name: str, *indexes: int) -> WritableTxnMarkerTopic:
        return WritableTxnMarkerTopic(name=name, partition_indexes=indexes)

    first = WritableTxnMarker(
        producer_id=7,
        producer_epoch=1,
        transaction_result=True,
        coordinator_epoch=3,
        topics=(topic("topic", 2, 5), topic(GROUP_METADATA_TOPIC, 4), topic("none", 0)),
    )
    second = replace(first, producer_id=8, topics=(topic("topic", 0),))
    answer = transactions.ask(WriteTxnMarkersRequest(markers=(first, second)), version)
    assert [
        (marker.producer_id, each.name, partition.partition_index, ErrorCode(partition.error_code))
        for marker in answer.markers
        for each in marker.topics
        for partition in each.partitions
    ] == [
        (7, "topic", 2, ErrorCode.NONE),
        (7, "topic", 5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (7, GROUP_METADATA_TOPIC, 4, ErrorCode.NONE),
        (7, "none", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (8, "topic", 0, ErrorCode.NONE),
    ]
    written = EndTxnMarker(7, 1, True, 3, transactions.broker.now_ms())
    assert transactions.markers(2) == [written]
    assert transactions.groups.markers == [(4, written)]


def test_markers_for_a_partition_that_another_broker_leads(transactions: Transactions) -> None:
    broker = transactions.broker
    transactions.broker = replace(broker, node_id=broker.node_id + 1)
    topic = WritableTxnMarkerTopic(name="topic", partition_indexes=(0,))
    request = WriteTxnMarkersRequest(markers=(WritableTxnMarker(producer_id=7, topics=(topic,)),))
    (marker,) = transactions.ask(request, 1).markers
    assert marker.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_no_markers(transactions: Transactions) -> None:
    assert transactions.ask(WriteTxnMarkersRequest(), 1).markers == ()
