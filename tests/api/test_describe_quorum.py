"""DescribeQuorum: the brokers of one process as the voters of one quorum, as Kafka 4.2 describes its own."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.answering import Broker
from kshim.api.describe_quorum import describe_quorum
from kshim.cluster.leaders import start_broker, stop_broker
from kshim.storage.memory import MemoryStore
from schemas.error_code import ErrorCode
from schemas.messages.describe_quorum import (
    DescribeQuorumRequest,
    Node,
    ReplicaState,
    RequestPartitionData,
    RequestTopicData,
)
from tests.api.harness import NOW_MS, ask, create, new_broker, result

METADATA = "__cluster_metadata"


def asking(*topics: tuple[str, tuple[int, ...]]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=tuple(
            RequestTopicData(
                topic_name=name,
                partitions=tuple(RequestPartitionData(partition_index=index) for index in indexes),
            )
            for name, indexes in topics
        )
    )


def quorum(broker: Broker) -> Any:
    ((partition,),) = (
        topic.partitions for topic in ask(describe_quorum, broker, asking((METADATA, (0,))), 2).topics
    )
    assert not partition.error_code
    return partition


def voter(node_id: int, offset: int) -> ReplicaState:
    return ReplicaState(
        replica_id=node_id,
        log_end_offset=offset,
        last_fetch_timestamp=NOW_MS,
        last_caught_up_timestamp=NOW_MS,
    )


def test_every_broker_votes_and_the_controller_leads() -> None:
    broker = new_broker(node_id=4, brokers=2)
    response = ask(describe_quorum, broker, asking((METADATA, (0,))), 2)
    partition = quorum(broker)
    offset = partition.high_watermark
    assert offset > 0
    assert (partition.leader_id, partition.leader_epoch, partition.observers) == (4, 1, ())
    assert partition.current_voters == (voter(4, offset), voter(5, offset))
    assert response.nodes == (Node(node_id=4), Node(node_id=5))


def test_the_offset_counts_the_durable_changes_also_after_a_restart() -> None:
    store = MemoryStore()
    broker = new_broker(store)
    before = quorum(broker).high_watermark
    create(broker, "t")
    assert quorum(broker).high_watermark == before + 1
    again = quorum(new_broker(store))
    assert (again.high_watermark, again.leader_epoch) == (before + 1, 2)


def test_another_controller_is_another_leader() -> None:
    broker = new_broker(node_id=1, brokers=2)
    result(stop_broker(broker.cluster, 1))
    partition = quorum(broker)
    assert (partition.leader_id, partition.leader_epoch) == (2, 2)
    stopped = ReplicaState(replica_id=1, log_end_offset=-1)
    assert partition.current_voters == (stopped, voter(2, partition.high_watermark))
    result(start_broker(broker.cluster, 1))
    partition = quorum(broker)
    assert (partition.leader_id, partition.leader_epoch) == (1, 3)
    assert partition.current_voters[0] == voter(1, partition.high_watermark)


@pytest.mark.parametrize(
    "topics",
    [
        ((METADATA, (1,)),),
        ((METADATA, (0, 1)),),
        ((METADATA, (0, 0)),),
        ((METADATA, (0,)), (METADATA, (0,))),
        ((METADATA, (0,)), ("t", ())),
        (("t", (0,)),),
        ((METADATA, ()),),
        (),
    ],
)
def test_anything_else_is_unknown(topics: tuple[tuple[str, tuple[int, ...]], ...]) -> None:
    response = ask(describe_quorum, new_broker(), asking(*topics), 2)
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    assert response.nodes == ()
    assert [
        (topic.topic_name, [(it.partition_index, it.error_code, it.error_message) for it in topic.partitions])
        for topic in response.topics
    ] == [(name, [(index, *unknown) for index in indexes]) for name, indexes in topics]
