"""The JSON of topics: their partitions, with leaders, first offsets and ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TypedDict

from kshim.cluster import Topic
from kshim.cluster.topics import Partition, uuid_text
from kshim.control.long import Long, in_order
from kshim.http.answers import Answer, Asked, listing
from kshim.http.facts import Facts
from kshim.storage.interfaces import PartitionEnds
from kshim.turns.slices import Slices

PARTITION_US = 20


class ShownPartition(TypedDict):
    """A partition: its leader, its replicas and its offsets."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int


async def topics(facts: Facts, asked: Asked) -> Answer:
    """GET /topics"""
    return listing("topics", rows(facts, asked.slices))


async def rows(facts: Facts, slices: Slices) -> AsyncIterator[Long]:
    """All topics, in the order of their names."""
    for name in await in_order(slices, facts.cluster.topics.keys()):
        topic = facts.cluster.topics.get(name)
        if topic is None:
            continue
        yield Long(topic_facts(topic), {"partitions": partitions(facts.ends, slices, topic)})


def topic_facts(topic: Topic) -> dict[str, object]:
    """A topic without its partitions."""
    return {
        "topic": topic.name,
        "topic_id": uuid_text(topic.topic_id),
        "is_internal": topic.is_internal,
        "configs": dict(topic.configs),
    }


async def partitions(ends: PartitionEnds, slices: Slices, topic: Topic) -> AsyncIterator[ShownPartition]:
    """The partitions of a topic."""
    for partition in topic.partitions:
        await slices.spend(PARTITION_US)
        yield _partition(ends, partition)


def _partition(ends: PartitionEnds, partition: Partition) -> ShownPartition:
    offsets = ends.offsets(partition.partition_no)
    return {
        "partition": partition.index,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "log_start_offset": offsets.log_start_offset,
        "high_watermark": offsets.high_watermark,
        "last_stable_offset": offsets.last_stable_offset,
    }
