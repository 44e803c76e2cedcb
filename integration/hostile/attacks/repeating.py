"""Requests that name one thing again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from integration.hostile.attack import Attack, Volley
from integration.hostile.batches import now_ms
from integration.hostile.requests import TOPIC, answers, create_topic, produce
from kshim.testing.wire import Wire, framed
from schemas.messages.delete_groups import DeleteGroupsRequest
from schemas.messages.delete_topics import DeleteTopicsRequest
from schemas.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.describe_producers import DescribeProducersRequest
from schemas.messages.describe_producers import TopicRequest as ProducersOfTopic
from schemas.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from schemas.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from schemas.messages.describe_transactions import DescribeTransactionsRequest
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic
from schemas.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from schemas.records.batch import Record, encode

TOPIC_RESOURCE = 2
PRODUCERS = 2_000


def _repeating(version: int, request: Any) -> Callable[[Wire], Sequence[Volley]]:
    def arm(wire: Wire) -> Sequence[Volley]:
        create_topic(wire, partitions=1000)
        let_many_produce(wire)
        return [Volley(label="the request", frames=[framed(version, request)])]

    return arm


def let_many_produce(wire: Wire) -> None:
    """Make many producers in a partition.

    DescribeProducers describes them all each time it names the partition.
    """
    record = Record(0, now_ms(), None, b"")
    records = [
        encode([record], producer_id=number, producer_epoch=0, base_sequence=0) for number in range(PRODUCERS)
    ]
    answers(wire, [produce(*records[start : start + 100]) for start in range(0, PRODUCERS, 100)], in_flight=4)


_PARTITION = ListOffsetsPartition(partition_index=0, timestamp=-1)
_CONFIG = DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=TOPIC)
_NO_OFFSETS = OffsetFetchRequestTopics(name="", partition_indexes=())
_REQUESTS: dict[str, tuple[int, Any]] = {
    "describe-producers": (
        0,
        DescribeProducersRequest(topics=(ProducersOfTopic(name=TOPIC, partition_indexes=(0,) * 1000),)),
    ),
    "describe-configs": (4, DescribeConfigsRequest(resources=(_CONFIG,) * 2000, include_synonyms=True)),
    "describe-groups": (5, DescribeGroupsRequest(groups=("g",) * 1_300_000)),
    "offset-fetch": (
        8,
        OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=(_NO_OFFSETS,)),) * 150_000),
    ),
    "metadata": (9, MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),) * 20_000)),
    "describe-topic-partitions": (
        0,
        DescribeTopicPartitionsRequest(topics=(DescribedTopic(name=TOPIC),) * 100_000),
    ),
    "list-offsets-topics": (
        6,
        ListOffsetsRequest(topics=(ListOffsetsTopic(name=TOPIC, partitions=(_PARTITION,)),) * 50_000),
    ),
    "list-offsets-partitions": (
        6,
        ListOffsetsRequest(topics=(ListOffsetsTopic(name=TOPIC, partitions=(_PARTITION,) * 80_000),)),
    ),
    "describe-transactions": (0, DescribeTransactionsRequest(transactional_ids=("t",) * 500_000)),
    "delete-topics": (5, DeleteTopicsRequest(topic_names=("unknown",) * 120_000, timeout_ms=1000)),
    "find-coordinator": (4, FindCoordinatorRequest(coordinator_keys=("g",) * 500_000)),
    "delete-groups": (2, DeleteGroupsRequest(groups_names=("g",) * 500_000)),
}
_QUICK = {"describe-producers", "metadata"}

ATTACKS = [
    Attack(
        name=f"repeat-{name}",
        what="one request with one name again and again",
        arm=_repeating(version, request),
        quick=name in _QUICK,
    )
    for name, (version, request) in _REQUESTS.items()
]
