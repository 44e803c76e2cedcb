"""Requests that name one thing again and again."""

from __future__ import annotations

from collections.abc import Sequence

from integration.hostile.attack import Attack, Volley
from integration.hostile.requests import TOPIC, create_topic
from integration.support.wire import Wire, framed
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

TOPIC_RESOURCE = 2


def _repeated_names(wire: Wire) -> Sequence[Volley]:
    create_topic(wire, partitions=1000)
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    config = DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=TOPIC)
    group = OffsetFetchRequestGroup(
        group_id="g", topics=(OffsetFetchRequestTopics(name="", partition_indexes=()),)
    )
    requests = [
        (0, DescribeProducersRequest(topics=(ProducersOfTopic(name=TOPIC, partition_indexes=(0,) * 1000),))),
        (4, DescribeConfigsRequest(resources=(config,) * 2000, include_synonyms=True)),
        (5, DescribeGroupsRequest(groups=("g",) * 1_300_000)),
        (8, OffsetFetchRequest(groups=(group,) * 150_000)),
        (9, MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),) * 20_000)),
        (0, DescribeTopicPartitionsRequest(topics=(DescribedTopic(name=TOPIC),) * 100_000)),
        (6, ListOffsetsRequest(topics=(ListOffsetsTopic(name=TOPIC, partitions=(partition,)),) * 50_000)),
        (6, ListOffsetsRequest(topics=(ListOffsetsTopic(name=TOPIC, partitions=(partition,) * 80_000),))),
        (0, DescribeTransactionsRequest(transactional_ids=("t",) * 500_000)),
        (5, DeleteTopicsRequest(topic_names=("unknown",) * 120_000, timeout_ms=1000)),
        (4, FindCoordinatorRequest(coordinator_keys=("g",) * 500_000)),
        (2, DeleteGroupsRequest(groups_names=("g",) * 500_000)),
    ]
    return [
        Volley(label=type(request).__name__.removesuffix("Request"), frames=[framed(version, request)])
        for version, request in requests
    ]


ATTACKS = (
    Attack(
        name="repeated-names",
        what="requests of 4 KB to 4 MB, each with one name again and again",
        arm=_repeated_names,
    ),
)
