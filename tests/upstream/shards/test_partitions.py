"""What kshim hears from the leaders of a topic's partitions."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from kshim.configs.endpoint import Endpoint
from kshim.upstream.link import LinkError
from kshim.upstream.shards.partitions import Partitions
from schemas.error_code import ErrorCode
from schemas.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from schemas.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from schemas.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from schemas.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from tests.api.harness import result

TOPIC = "groups"


class Upstream:
    """One broker, which leads partition 0, and answers all with `error`; None: not at all."""

    is_open = True

    def __init__(self) -> None:
        self.error: ErrorCode | None = ErrorCode.NONE

    def connect(self, address: Endpoint, timeout_s: float) -> Deferred[Any]:
        return succeed(self)

    def ask(self, request: Any, **_: Any) -> Deferred[Any]:
        if isinstance(request, MetadataRequest):
            broker = MetadataResponseBroker(node_id=1, host="10.0.0.1", port=9092)
            partition = MetadataResponsePartition(partition_index=0, leader_id=1)
            topic = MetadataResponseTopic(name=TOPIC, partitions=(partition,))
            return succeed(MetadataResponse(brokers=(broker,), topics=(topic,)))
        if self.error is None:
            return fail(LinkError("no answer"))
        if isinstance(request, ListOffsetsRequest):
            end = ListOffsetsPartitionResponse(partition_index=0, error_code=self.error, offset=5)
            topics = (ListOffsetsTopicResponse(name=TOPIC, partitions=(end,)),)
            return succeed(ListOffsetsResponse(topics=topics))
        if isinstance(request, FetchRequest):
            data = PartitionData(partition_index=0, error_code=self.error, high_watermark=5)
            return succeed(
                FetchResponse(responses=(FetchableTopicResponse(topic=TOPIC, partitions=(data,)),))
            )
        produced = PartitionProduceResponse(index=0, error_code=self.error, base_offset=5)
        responses = (TopicProduceResponse(name=TOPIC, partition_responses=(produced,)),)
        return succeed(ProduceResponse(responses=responses))

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("error", "of_append", "of_others"),
    [
        (ErrorCode.NONE, 1, 2),
        (ErrorCode.NOT_ENOUGH_REPLICAS, 1, 0),
        (ErrorCode.INVALID_PRODUCER_EPOCH, 1, 0),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0, 0),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0, 0),
        (None, 0, 0),
    ],
)
def test_a_partition_is_heard_when_its_leader_answers_for_it(
    error: ErrorCode | None, of_append: int, of_others: int
) -> None:
    clock: Any = Clock()
    upstream: Any = Upstream()
    heard: list[int] = []
    partitions = Partitions(clock, TOPIC, upstream, heard.append)
    assert result(Deferred.fromCoroutine(partitions.learn())) is True
    upstream.error = error
    partitions.append(0, b"")
    clock.advance(0)
    assert heard == [0] * of_append
    partitions.end(0)
    clock.advance(0)
    partitions.fetch(0, 0)
    assert heard == [0] * (of_append + of_others)
    partitions.stop()
