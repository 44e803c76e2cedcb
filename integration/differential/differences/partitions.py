"""Partitions in a scenario: what they accept, and where they begin."""

from __future__ import annotations

from typing import Any

from integration.differential.differences.guest import PATIENCE_S, Guest
from integration.differential.stories.talk import AT_MS
from integration.support.awaiting import wait_until
from schemas.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from schemas.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.records.batch import Record, batches, decode_header, encode

PRODUCE, FETCH, LIST_OFFSETS, DELETE_RECORDS = 9, 12, 7, 2
EARLIEST, LARGEST_TIMESTAMP = -2, -3


def one(value: bytes = b"v", *, key: bytes | None = None, at_ms: int = AT_MS, **fields: Any) -> bytes:
    """A batch of one record."""
    return encode([Record(0, at_ms, key, value)], **fields)


def producing(guest: Guest, topic: str, batch: bytes | None) -> ProduceRequest:
    data = TopicProduceData(
        name=guest.name(topic), partition_data=(PartitionProduceData(index=0, records=batch),)
    )
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=(data,))


def offset(guest: Guest, topic: str, timestamp: int = EARLIEST) -> int:
    """Partition 0's offset from ListOffsets; a server that has just started needs a moment."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = (ListOffsetsTopic(name=guest.name(topic), partitions=(partition,)),)

    def listed() -> Any:
        (found,) = guest.unheard(LIST_OFFSETS, ListOffsetsRequest(topics=topics)).topics[0].partitions
        return None if found.error_code else found

    return int(wait_until(listed, PATIENCE_S, "an offset").offset)


def delete_records(guest: Guest, topic: str, before: int) -> None:
    partition = DeleteRecordsPartition(partition_index=0, offset=before)
    topics = (DeleteRecordsTopic(name=guest.name(topic), partitions=(partition,)),)
    answer = guest.unheard(DELETE_RECORDS, DeleteRecordsRequest(topics=topics, timeout_ms=10_000))
    assert answer.topics[0].partitions[0].low_watermark == before, answer


def record_count(guest: Guest, topic: str) -> int:
    """The number of records in one Fetch of partition 0, from its start."""
    return sum(decode_header(batch).records_count for batch in batches(fetched(guest, topic)))


def stored_bytes(guest: Guest, topic: str, offset: int = 0, **options: Any) -> int:
    """The bytes in one Fetch of partition 0, including a cut batch."""
    return len(fetched(guest, topic, offset, **options))


def fetched(guest: Guest, topic: str, offset: int = 0, **options: Any) -> bytes:
    """One Fetch of partition 0."""
    answer = guest.unheard(FETCH, guest.fetching(((topic, 0, offset),), version=FETCH, **options))
    return bytes(answer.responses[0].partitions[0].records or b"")
