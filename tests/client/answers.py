"""Answers of a broker that is played by hand."""

from __future__ import annotations

from schemas.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from schemas.records import batch
from schemas.records.batch import Record


def metadata(port: int, partitions: int = 1) -> MetadataResponse:
    """One broker, and the topic `orders`."""
    return MetadataResponse(
        brokers=(MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port),),
        controller_id=1,
        topics=(
            MetadataResponseTopic(
                name="orders",
                partitions=tuple(
                    MetadataResponsePartition(
                        partition_index=n, leader_id=1, replica_nodes=(1,), isr_nodes=(1,)
                    )
                    for n in range(partitions)
                ),
            ),
        ),
    )


def data_of(base_offset: int, *values: bytes, producer_id: int = -1) -> bytes:
    records = [Record(base_offset + at, 5, None, value) for at, value in enumerate(values)]
    return batch.encode(
        records, base_offset=base_offset, producer_id=producer_id, is_transactional=producer_id >= 0
    )
