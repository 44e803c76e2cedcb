"""DescribeProducers: the producers that write to a partition. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kshim.answering import Broker
from kshim.api.describe_producers import describe_producers
from schemas.error_code import ErrorCode
from schemas.messages.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from schemas.records.batch import Record, encode
from schemas.records.end_txn_marker import EndTxnMarker, encode_marker
from tests.api.harness import NOW_MS, ask, batch, create, new_broker, result


@pytest.fixture
def broker() -> Broker:
    broker = new_broker()
    create(broker, "t", 2)
    return broker


def describe(broker: Broker, name: str, *indexes: int) -> tuple[PartitionResponse, ...]:
    request = DescribeProducersRequest(topics=(TopicRequest(name=name, partition_indexes=indexes),))
    response = ask(describe_producers, broker, request, 0)
    (topic,) = response.topics
    assert topic.name == name
    found: tuple[PartitionResponse, ...] = topic.partitions
    return found


def append(broker: Broker, *appended: bytes) -> None:
    partition_no = broker.cluster.topics["t"].partitions[1].partition_no
    for data in appended:
        result(broker.log.append(partition_no, data, now_ms=NOW_MS))


def test_idempotent_and_transactional_producers(broker: Broker) -> None:
    in_transaction = encode(
        [Record(0, NOW_MS, b"k", b"v")],
        producer_id=5,
        producer_epoch=2,
        base_sequence=7,
        is_transactional=True,
    )
    ended = encode_marker(EndTxnMarker(9, 3, True, coordinator_epoch=4, timestamp_ms=NOW_MS + 1))
    append(broker, batch(b"a", b"b", producer=(7, 0, 3)), in_transaction, ended, batch())
    empty, written = describe(broker, "t", 0, 1)
    assert empty == PartitionResponse(partition_index=0)

    def state(producer_id: int, epoch: int, sequence: int, at_ms: int, **more: Any) -> ProducerState:
        more.setdefault("coordinator_epoch", -1)
        return ProducerState(
            producer_id=producer_id,
            producer_epoch=epoch,
            last_sequence=sequence,
            last_timestamp=at_ms,
            **more,
        )

    assert written.active_producers == (
        state(5, 2, 7, NOW_MS, current_txn_start_offset=2),
        state(7, 0, 4, NOW_MS),
        state(9, 3, -1, NOW_MS + 1, coordinator_epoch=4),
    )


def test_partitions_that_are_not_there(broker: Broker) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [found.error_code for found in describe(broker, "t", 0, 2, -1)] == [0, unknown, unknown]
    assert [found.error_code for found in describe(broker, "nope", 0, 1)] == [unknown] * 2
    (invalid,) = describe(broker, "no/pe", 0)
    assert invalid.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert describe(broker, "t") == ()


def test_another_broker_leads(broker: Broker) -> None:
    (found,) = describe(replace(broker, node_id=9), "t", 0)
    assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_tells_it_too() -> None:
    broker = new_broker(brokers=2, default_replication_factor=2)
    result(broker.cluster.auto_create_topics(["t"]))
    for node_id in (1, 2):
        (found,) = describe(replace(broker, node_id=node_id), "t", 0)
        assert found.error_code == ErrorCode.NONE
