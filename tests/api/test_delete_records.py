"""DeleteRecords moves the start of a log. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

import pytest

from kshim.answering import Broker
from kshim.api.delete_records import delete_records
from kshim.api.fetch import fetch
from kshim.api.list_offsets import list_offsets
from kshim.cluster import Topic
from kshim.cluster.checks import NewTopic
from schemas.error_code import ErrorCode
from schemas.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from schemas.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from schemas.records.batch import Record, encode
from tests.api.harness import NOW_MS, HeldStore, ask, batch, collect, context, create, new_broker, result

REFUSED = -1


@pytest.fixture
def broker() -> Broker:
    """Topic t: ten records in partition 0 in five batches of two, none in partition 1."""
    broker = new_broker()
    fill(broker, "t")
    return broker


def fill(broker: Broker, name: str, **configs: str) -> None:
    partition_no = create(broker, name, 2, **configs).partitions[0].partition_no
    for number in range(5):
        records = encode([Record(i, 100 * number, b"k", b"v") for i in range(2)])
        result(broker.log.append(partition_no, records, now_ms=NOW_MS))


def delete(
    broker: Broker, *wanted: tuple[str, int, int], version: int = 2
) -> list[tuple[str, int, int, int]]:
    """wanted: (topic, partition, offset). Returns (topic, partition, error, low watermark)."""
    topics = tuple(
        DeleteRecordsTopic(
            name=name, partitions=(DeleteRecordsPartition(partition_index=index, offset=offset),)
        )
        for name, index, offset in wanted
    )
    response = ask(delete_records, broker, DeleteRecordsRequest(topics=topics, timeout_ms=1000), version)
    return [
        (topic.name, partition.partition_index, partition.error_code, partition.low_watermark)
        for topic in response.topics
        for partition in topic.partitions
    ]


def read(broker: Broker, offset: int) -> PartitionData:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=10**6)
    topics = (FetchTopic(topic="t", partitions=(partition,)),)
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=10**6, topics=topics)
    answer: PartitionData = ask(fetch, broker, request, 12).responses[0].partitions[0]
    return answer


def offset_at(broker: Broker, timestamp: int) -> int:
    topics = (
        ListOffsetsTopic(
            name="t", partitions=(ListOffsetsPartition(partition_index=0, timestamp=timestamp),)
        ),
    )
    request = ListOffsetsRequest(replica_id=-1, topics=topics)
    offset: int = ask(list_offsets, broker, request, 7).topics[0].partitions[0].offset
    return offset


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_log_starts_at_the_offset(broker: Broker, version: int) -> None:
    assert delete(broker, ("t", 0, 3), version=version) == [("t", 0, 0, 3)]
    assert offset_at(broker, -2) == 3
    assert read(broker, 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    found = read(broker, 3)
    assert (found.error_code, found.log_start_offset, found.high_watermark) == (0, 3, 10)
    assert bytes(found.records[:8]) == (2).to_bytes(8)  # whole batches: the consumer drops the records below
    assert offset_at(broker, 0) == 3


def test_minus_one_is_the_high_watermark(broker: Broker) -> None:
    assert delete(broker, ("t", 0, -1), ("t", 1, -1)) == [("t", 0, 0, 10), ("t", 1, 0, 0)]
    assert (offset_at(broker, -2), offset_at(broker, -1)) == (10, 10)
    assert (read(broker, 10).error_code, bytes(read(broker, 10).records)) == (0, b"")


def test_the_start_never_goes_back(broker: Broker) -> None:
    delete(broker, ("t", 0, 6))
    assert delete(broker, ("t", 0, 2)) == [("t", 0, 0, 6)]
    assert delete(broker, ("t", 0, 0)) == [("t", 0, 0, 6)]


@pytest.mark.parametrize("offset", [11, -2, 2**63 - 1])
def test_offsets_that_are_not_in_the_log(broker: Broker, offset: int) -> None:
    assert delete(broker, ("t", 0, offset)) == [("t", 0, ErrorCode.OFFSET_OUT_OF_RANGE, REFUSED)]
    assert offset_at(broker, -2) == 0


def test_what_is_not_there(broker: Broker) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for name, index in (("nope", 0), ("t", 2), ("t", -1), ("__consumer_offsets", 50)):
        assert delete(broker, (name, index, 1)) == [(name, index, unknown, REFUSED)]


def test_internal_topics_keep_their_records(broker: Broker) -> None:
    answer = delete(broker, ("__consumer_offsets", 0, -1))
    assert answer == [("__consumer_offsets", 0, ErrorCode.INVALID_TOPIC_EXCEPTION, REFUSED)]


def test_only_the_policy_delete_allows_it(broker: Broker) -> None:
    fill(broker, "compacted", **{"cleanup.policy": "compact"})
    fill(broker, "both", **{"cleanup.policy": "compact,delete"})
    assert delete(broker, ("compacted", 0, 11), ("both", 0, 1)) == [
        ("compacted", 0, ErrorCode.POLICY_VIOLATION, REFUSED),
        ("both", 0, 0, 1),
    ]


def test_answers_when_it_is_durable() -> None:
    store = HeldStore()
    broker, topic = held(store)
    for release, answer in ((store.release, (0, 1)), (store.fail, (ErrorCode.KAFKA_STORAGE_ERROR, REFUSED))):
        wanted = DeleteRecordsTopic(
            name="t", partitions=(DeleteRecordsPartition(partition_index=0, offset=1),)
        )
        request = DeleteRecordsRequest(topics=(wanted,), timeout_ms=0)
        seen = collect(delete_records(broker, context(2), request))
        assert seen == []
        release()
        (partition,) = seen[0].topics[0].partitions
        assert (partition.error_code, partition.low_watermark) == answer
    assert broker.log.offsets(topic.partitions[0].partition_no).log_start_offset == 1


def held(store: HeldStore) -> tuple[Broker, Topic]:
    """Topic t with one record."""
    broker = new_broker(store)
    broker.cluster.create_topics([NewTopic("t")])
    store.release_all()
    topic = broker.cluster.topics["t"]
    broker.log.append(topic.partitions[0].partition_no, batch(), now_ms=NOW_MS)
    store.release_all()
    return broker, topic
