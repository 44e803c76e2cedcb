"""Requests with as many elements as one request may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from integration.hostile.attack import MB, Attack, Bounds, Volley
from integration.hostile.batches import now_ms
from integration.hostile.requests import TIMEOUT_MS, TOPIC, create_topic, new_topic
from kshim.testing.wire import Wire, framed
from schemas.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from schemas.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from schemas.messages.create_topics import CreateTopicsRequest
from schemas.messages.delete_topics import DeleteTopicsRequest
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
from schemas.records.batch import Record, encode

MANY = 90_000
PARTITIONS = 9_000
NEW_TOPICS = 4_900
"""About as many topics as Kafka creates at once."""


def _requests() -> dict[str, tuple[int, Any]]:
    names = [f"{TOPIC}-{number}" for number in range(MANY)]
    numbers = [number % PARTITIONS for number in range(MANY)]
    batch = encode([Record(0, now_ms(), None, b"")])
    marker = WritableTxnMarker(
        producer_id=1,
        producer_epoch=0,
        topics=(WritableTxnMarkerTopic(name=TOPIC, partition_indexes=tuple(numbers[: MANY // 3])),),
    )
    return {
        "CreateTopics": (
            4,
            CreateTopicsRequest(topics=tuple(map(new_topic, names[:NEW_TOPICS])), timeout_ms=TIMEOUT_MS),
        ),
        "AlterConfigs": (
            1,
            AlterConfigsRequest(
                resources=tuple(AlterConfigsResource(resource_type=2, resource_name=name) for name in names)
            ),
        ),
        "CreatePartitions": (
            1,
            CreatePartitionsRequest(
                topics=tuple(CreatePartitionsTopic(name=name, count=2, assignments=None) for name in names),
                timeout_ms=TIMEOUT_MS,
                validate_only=True,
            ),
        ),
        "OffsetForLeaderEpoch": (
            3,
            OffsetForLeaderEpochRequest(
                topics=(
                    OffsetForLeaderTopic(
                        topic=TOPIC,
                        partitions=tuple(OffsetForLeaderPartition(partition=number) for number in numbers),
                    ),
                )
            ),
        ),
        "Produce": (
            7,
            ProduceRequest(
                acks=-1,
                timeout_ms=TIMEOUT_MS,
                topic_data=(
                    TopicProduceData(
                        name=TOPIC,
                        partition_data=tuple(
                            PartitionProduceData(index=number, records=batch) for number in numbers[:20_000]
                        ),
                    ),
                ),
            ),
        ),
        "Fetch": (
            11,
            FetchRequest(
                max_wait_ms=100,
                min_bytes=1,
                max_bytes=1 << 20,
                topics=(
                    FetchTopic(
                        topic=TOPIC,
                        partitions=tuple(
                            FetchPartition(partition=number, partition_max_bytes=100)
                            for number in range(MANY)
                        ),
                    ),
                ),
            ),
        ),
        "WriteTxnMarkers": (1, WriteTxnMarkersRequest(markers=(marker,))),
        "DeleteTopics": (3, DeleteTopicsRequest(topic_names=tuple(names), timeout_ms=TIMEOUT_MS)),
    }


def _wide(wire: Wire) -> Sequence[Volley]:
    create_topic(wire, partitions=PARTITIONS)
    return [
        Volley(label=label, frames=[framed(version, request)])
        for label, (version, request) in _requests().items()
    ]


ATTACKS = (
    Attack(
        name="wide-requests",
        what=f"requests about {MANY:,} topics or partitions",
        arm=_wide,
        bounds=Bounds(kept_bytes=100 * MB),  # the topics remain
    ),
)
