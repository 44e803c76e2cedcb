"""Fetch requests of one topic, the records that they read, and what came back."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kshim.answering import Broker
from kshim.api.fetch import fetch
from schemas.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from schemas.records.batch import batches, decode_header
from tests.api.harness import NOW_MS, ask, batch, result


def wanted(index: int, offset: int, max_bytes: int = 1 << 20, **more: Any) -> FetchPartition:
    return FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes, **more)


def request(*partitions: FetchPartition, topic: str = "t", **more: Any) -> FetchRequest:
    settings: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "isolation_level": 0, **more}
    topic_id = settings.pop("topic_id", UUID(int=0))
    return FetchRequest(
        topics=(FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions),), **settings
    )


def read(
    broker: Broker, *partitions: FetchPartition, version: int = 12, **more: Any
) -> tuple[PartitionData, ...]:
    response = ask(fetch, broker, request(*partitions, **more), version)
    return tuple(response.responses[0].partitions)


def read_one(broker: Broker, offset: int, version: int = 12, **more: Any) -> PartitionData:
    (partition,) = read(broker, wanted(0, offset, **more.pop("partition", {})), version=version, **more)
    return partition


def append(broker: Broker, index: int = 0, topic: str = "t", value: bytes = b"x" * 100) -> None:
    partition = broker.cluster.topics[topic].partitions[index]
    result(broker.log.append(partition.partition_no, batch(value), now_ms=NOW_MS))


def offsets(data: PartitionData) -> list[int]:
    return [decode_header(item).base_offset for item in batches(data.records or b"")]
