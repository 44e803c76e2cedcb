"""The driver's own requests to the cluster: ends of partitions, times of single records, offsets of groups.

All results grow with the number of partitions and groups, never with the number of records.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple
from uuid import UUID

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from kshim.spark.errors import PipelineError

TIMEOUT_MS = 5_000
ONE_RECORD_BYTES = 1
"""A limit for a Fetch that returns only the first batch, which always comes whole."""

UNCOMMITTED, COMMITTED = "read_uncommitted", "read_committed"


class Position(NamedTuple):
    topic: str
    partition: int
    offset: int


class GroupOffset(NamedTuple):
    """A group's offset for one partition, committed or to be committed."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@contextmanager
def _kafka_errors(bootstrap: str) -> Iterator[None]:
    """Raise errors of the Kafka client as PipelineError within the block."""
    try:
        yield
    except KafkaError as error:
        reason = str(error) or type(error).__name__
        raise PipelineError(
            f"no answer from Kafka at {bootstrap}: {reason}; expected HOST:PORT of a running server"
        ) from error


def _consumer(bootstrap: str, **options: object) -> closing[KafkaConsumer]:
    return closing(
        KafkaConsumer(
            bootstrap_servers=bootstrap.split(","),
            bootstrap_timeout_ms=TIMEOUT_MS,
            enable_auto_commit=False,
            allow_auto_create_topics=False,
            **options,
        )
    )


def _admin(bootstrap: str) -> closing[KafkaAdminClient]:
    return closing(KafkaAdminClient(bootstrap_servers=bootstrap.split(","), bootstrap_timeout_ms=TIMEOUT_MS))


def partition_count(bootstrap: str, topic: str) -> int:
    """The number of a topic's partitions; 0 if it does not exist.

    Raises PipelineError if no server answers.
    """
    with _kafka_errors(bootstrap), _consumer(bootstrap) as consumer:
        return len(consumer.partitions_for_topic(topic) or ())


def topic_names(bootstrap: str) -> dict[str, str]:
    """The names of all topics by their ids, which are in Kafka's text form.

    Raises PipelineError if no server answers.
    """
    with _kafka_errors(bootstrap), _admin(bootstrap) as admin:
        topics = admin.describe_topics()
    return {_id_text(topic["topic_id"]): topic["name"] for topic in topics if topic.get("topic_id")}


def _id_text(topic_id: UUID | str) -> str:
    return base64.urlsafe_b64encode(UUID(str(topic_id)).bytes).decode()[:22]


def record_count(bootstrap: str, topic: str) -> int:
    """The number of a topic's offsets; it has fewer records if compaction has left gaps. 0 for an unknown
    topic.

    Raises PipelineError if no server answers.
    """
    with _kafka_errors(bootstrap), _consumer(bootstrap) as consumer:
        partitions = [TopicPartition(topic, index) for index in consumer.partitions_for_topic(topic) or ()]
        starts, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    return int(sum(ends.values()) - sum(starts.values()))


def end_offsets(
    bootstrap: str, topics: Iterable[str] | None = None, isolation_level: str = UNCOMMITTED
) -> list[Position]:
    """The end offset of each partition of the topics; with read_committed, its last stable offset.

    topics: None for all topics of the cluster. Topics that do not exist are left out.
    """
    with _kafka_errors(bootstrap), _consumer(bootstrap, isolation_level=isolation_level) as consumer:
        topics = consumer.topics() if topics is None else topics
        partitions = [
            TopicPartition(topic, index)
            for topic in sorted(set(topics))
            for index in sorted(consumer.partitions_for_topic(topic) or ())
        ]
        ends = consumer.end_offsets(partitions, timeout_ms=TIMEOUT_MS)
    return [Position(at.topic, at.partition, offset) for at, offset in ends.items()]


def ends_at(
    bootstrap: str, topics: Iterable[str], times_ms: Sequence[int]
) -> dict[tuple[str, int], list[int]]:
    """The end offsets of each partition at each of the times, by (topic, partition).

    The end at a time is the offset of the first record that is not older. Topics that do not exist are left
    out. This takes one request for each time and broker.
    """
    now = {(at.topic, at.partition): at.offset for at in end_offsets(bootstrap, topics)}
    ends: dict[tuple[str, int], list[int]] = {at: [] for at in now}
    if not ends:
        return ends
    with _kafka_errors(bootstrap), _consumer(bootstrap) as consumer:
        for time_ms in times_ms:
            asked = {TopicPartition(*at): time_ms for at in ends}
            found = consumer.offsets_for_times(asked)
            for at, offsets in ends.items():
                first = found.get(TopicPartition(*at))
                offsets.append(now[at] if first is None else first.offset)
    return ends


def oldest_record_ms(bootstrap: str, topic: str) -> int | None:
    """The timestamp of the oldest record of a topic, in ms; None if the topic has no records."""
    with _kafka_errors(bootstrap), _consumer(bootstrap) as consumer:
        partitions = [TopicPartition(topic, index) for index in consumer.partitions_for_topic(topic) or ()]
        starts = consumer.beginning_offsets(partitions)
        ends = consumer.end_offsets(partitions)
    full = [Position(at.topic, at.partition, start) for at, start in starts.items() if start < ends[at]]
    return min(record_times(bootstrap, full).values(), default=None)


def record_times(bootstrap: str, positions: Iterable[Position]) -> dict[Position, int]:
    """The timestamp, in ms, of the first record at or after each position. Fetches one batch for each
    position.

    Positions without a record there or later are left out.
    """
    times: dict[Position, int] = {}
    with (
        _kafka_errors(bootstrap),
        _consumer(
            bootstrap,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=ONE_RECORD_BYTES,
            max_poll_records=100_000,
        ) as consumer,
    ):
        for together in _rounds(positions):
            consumer.assign(list(together))
            consumer.resume(*together)
            for at, position in together.items():
                consumer.seek(at, position.offset)
            while together and (found := consumer.poll(timeout_ms=TIMEOUT_MS)):
                for at, records in found.items():
                    times[together.pop(at)] = records[0].timestamp
                consumer.pause(*found)
    return times


def _rounds(positions: Iterable[Position]) -> Iterator[dict[TopicPartition, Position]]:
    """Group positions into rounds with at most one position per partition, as a consumer has only one."""
    by_partition: dict[TopicPartition, list[Position]] = defaultdict(list)
    for position in sorted(set(positions)):
        by_partition[TopicPartition(position.topic, position.partition)].append(position)
    while by_partition:
        yield {at: of_partition.pop() for at, of_partition in by_partition.items()}
        by_partition = {at: left for at, left in by_partition.items() if left}


def committed(bootstrap: str, group_id: str) -> dict[tuple[str, int], int]:
    """The committed offsets of a group, by (topic, partition)."""
    with _kafka_errors(bootstrap), _admin(bootstrap) as admin:
        offsets = admin.list_group_offsets([group_id])[group_id]
    return {(at.topic, at.partition): found.offset for at, found in offsets.items()}


def commit_offsets(
    bootstrap: str, group_id: str, offsets: Iterable[GroupOffset]
) -> Mapping[tuple[str, int], str]:
    """Commit for a group without members: OffsetCommit with generation -1 (KIP-396).

    Returns Kafka's error for each (topic, partition), "" for success.
    """
    wanted = {
        TopicPartition(it.topic, it.partition): OffsetAndMetadata(it.offset, it.metadata, it.leader_epoch)
        for it in offsets
    }
    with _kafka_errors(bootstrap), _admin(bootstrap) as admin:
        outcome = admin.alter_group_offsets(group_id, wanted)
    return {(at.topic, at.partition): _error_name(error) for at, error in outcome.items()}


def _error_name(error: object) -> str:
    name = error.__name__ if isinstance(error, type) else type(error).__name__
    return "" if name in ("NoError", "NoneType") else name.removesuffix("Error")
