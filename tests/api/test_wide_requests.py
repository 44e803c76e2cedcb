"""A request about many things is answered in slices, and as if it were about few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from kshim.answering import Broker, alter
from kshim.api import (
    add_partitions_to_txn,
    alter_configs,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_topic_partitions,
    fetch,
    incremental_alter_configs,
    offset_for_leader_epoch,
    produce,
    write_txn_markers,
)
from kshim.producing import entries
from kshim.turns import slices
from schemas.error_code import ErrorCode
from schemas.messages import alter_configs as alter_messages
from schemas.messages import incremental_alter_configs as incremental_messages
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from schemas.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from schemas.messages.delete_topics import DeleteTopicsRequest
from schemas.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from schemas.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.api.harness import advance, batch, collect, context, create, new_broker

PARTITIONS = 5
TOPIC = 2
LONG_NAME = "x" * 250


class Case(NamedTuple):
    """A request, and what is made small so that it is wide."""

    function: Callable[..., Any]
    version: int
    request: Any
    module: Any = None
    limit: str = ""


def producing(*indexes: int) -> ProduceRequest:
    data = tuple(PartitionProduceData(index=index, records=batch(b"v")) for index in indexes)
    topics = (
        TopicProduceData(name="t", partition_data=data),
        TopicProduceData(name="none", partition_data=data[:1]),
    )
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)


def fetching(*indexes: int, max_wait_ms: int = 0) -> FetchRequest:
    partitions = tuple(FetchPartition(partition=index, partition_max_bytes=10_000) for index in indexes)
    topics = (FetchTopic(topic="t", partitions=partitions), FetchTopic(topic="none", partitions=partitions))
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=100_000, topics=topics)


CASES = {
    "AddPartitionsToTxn": Case(
        add_partitions_to_txn.add_partitions_to_txn,
        4,
        AddPartitionsToTxnRequest(
            transactions=tuple(
                AddPartitionsToTxnTransaction(
                    transactional_id=name, topics=(AddPartitionsToTxnTopic(name="none", partitions=(0,)),)
                )
                for name in "abcde"
            )
        ),
        add_partitions_to_txn,
        "TRANSACTIONS_AT_ONCE",
    ),
    "AlterConfigs": Case(
        alter_configs.alter_configs,
        1,
        alter_messages.AlterConfigsRequest(
            resources=tuple(
                alter_messages.AlterConfigsResource(
                    resource_type=TOPIC,
                    resource_name=name,
                    configs=(alter_messages.AlterableConfig(name="retention.ms", value=value),),
                )
                for name, value in (("t", "1"), ("none", "1"), ("u", "bad"), ("u", "1"), ("v", "2"))
            )
        ),
        alter,
        "RESOURCES_AT_ONCE",
    ),
    "IncrementalAlterConfigs": Case(
        incremental_alter_configs.incremental_alter_configs,
        1,
        incremental_messages.IncrementalAlterConfigsRequest(
            resources=tuple(
                incremental_messages.AlterConfigsResource(
                    resource_type=TOPIC,
                    resource_name=name,
                    configs=(incremental_messages.AlterableConfig(name="retention.ms", value="5"),),
                )
                for name in ("t", "none", "t", "v", "")
            )
        ),
        alter,
        "RESOURCES_AT_ONCE",
    ),
    "CreatePartitions": Case(
        create_partitions.create_partitions,
        2,
        CreatePartitionsRequest(
            timeout_ms=1000,
            topics=tuple(
                CreatePartitionsTopic(name=name, count=7, assignments=None)
                for name in ("t", "none", "v", "none", "w")
            ),
        ),
        create_partitions,
        "TOPICS_AT_ONCE",
    ),
    "CreateTopics": Case(
        create_topics.create_topics,
        5,
        CreateTopicsRequest(
            timeout_ms=1000,
            topics=tuple(
                CreatableTopic(name=name, num_partitions=2, replication_factor=1)
                for name in ("a", "t", "b", "c", "b", LONG_NAME)
            ),
        ),
    ),
    "DeleteTopics": Case(
        delete_topics.delete_topics,
        4,
        DeleteTopicsRequest(timeout_ms=1000, topic_names=("t", "none", "v", "v", "w")),
    ),
    "DeleteRecords": Case(
        delete_records.delete_records,
        2,
        DeleteRecordsRequest(
            timeout_ms=1000,
            topics=tuple(
                DeleteRecordsTopic(
                    name=name,
                    partitions=tuple(
                        DeleteRecordsPartition(partition_index=index, offset=offset)
                        for index in range(6)
                        for offset in (7, 0)
                    ),
                )
                for name in ("t", "none", "u")
            ),
        ),
        delete_records,
        "PARTITIONS_AT_ONCE",
    ),
    "AddPartitionsToTxn of a client": Case(
        add_partitions_to_txn.add_partitions_to_txn,
        3,
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="a",
            v3_and_below_producer_id=1,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=tuple(
                AddPartitionsToTxnTopic(name=name, partitions=(0, 77, 1, 1)) for name in ("t", "none")
            ),
        ),
    ),
    "DescribeTopicPartitions": Case(
        describe_topic_partitions.describe_topic_partitions,
        0,
        DescribeTopicPartitionsRequest(
            topics=tuple(TopicRequest(name=name) for name in ("w", "none", "t", "!", "t", "u")),
            response_partition_limit=2 * PARTITIONS + 1,
        ),
        describe_topic_partitions,
        "SORTED_AT_ONCE",
    ),
    "Fetch": Case(fetch.fetch, 12, fetching(*range(PARTITIONS), 77), fetch, "PARTITIONS_AT_ONCE"),
    "OffsetForLeaderEpoch": Case(
        offset_for_leader_epoch.offset_for_leader_epoch,
        3,
        OffsetForLeaderEpochRequest(
            topics=tuple(
                OffsetForLeaderTopic(
                    topic=name,
                    partitions=tuple(OffsetForLeaderPartition(partition=index) for index in range(6)),
                )
                for name in ("t", "none")
            )
        ),
    ),
    "Produce": Case(produce.produce, 9, producing(0, 1, 77, 3), entries, "ENTRIES_AT_ONCE"),
    "WriteTxnMarkers": Case(
        write_txn_markers.write_txn_markers,
        1,
        WriteTxnMarkersRequest(
            markers=tuple(
                WritableTxnMarker(
                    producer_id=number,
                    producer_epoch=0,
                    topics=(
                        WritableTxnMarkerTopic(name="t", partition_indexes=(0, 1, 77)),
                        WritableTxnMarkerTopic(name="none", partition_indexes=(0,)),
                    ),
                )
                for number in (7, 8)
            )
        ),
        write_txn_markers,
        "PLACES_AT_ONCE",
    ),
}


def filled() -> Broker:
    broker = new_broker()
    for name in ("t", "u", "v", "w"):
        create(broker, name, PARTITIONS)
    return broker


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_a_wide_request_is_answered_as_a_narrow_one(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    (narrow,) = collect(case.function(filled(), context(case.version), case.request))
    broker, caller = filled(), context(case.version)
    if case.module:
        monkeypatch.setattr(case.module, case.limit, 2)
    monkeypatch.setattr(slices, "SLICE_US", 1)
    answers = collect(case.function(broker, caller, case.request))
    assert answers == []
    assert caller.turn.is_alone
    advance(broker)
    assert answers == [narrow]


def test_a_wide_fetch_waits_for_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "PARTITIONS_AT_ONCE", 2)
    broker = filled()
    answers = collect(fetch.fetch(broker, context(12), fetching(*range(PARTITIONS), max_wait_ms=500)))
    for _ in range(20):
        advance(broker)
    assert answers == []
    collect(produce.produce(broker, context(9), producing(1)))
    for _ in range(20):
        advance(broker)
    (answer,) = answers
    (topic, none) = answer.responses
    assert [bool(each.records) for each in topic.partitions] == [False, True, False, False, False]
    assert {each.error_code for each in none.partitions} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_wide_fetch_sees_what_came_between_two_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "PARTITIONS_AT_ONCE", 2)
    broker = filled()
    answers = collect(fetch.fetch(broker, context(12), fetching(*range(PARTITIONS), max_wait_ms=500)))
    advance(broker)
    collect(produce.produce(broker, context(9), producing(0)))
    for _ in range(20):
        advance(broker)
    assert answers[0].responses[0].partitions[0].records
