"""The families of metrics with a sample for each partition or group.

A server may have 100,000 groups. So each sample is read just before it is sent, and none is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from typing import Final

from kshim.cluster.topics import Partition
from kshim.control.rows import ROW_US as GROUP_US
from kshim.control.rows import OffsetRow, offsets
from kshim.coordination.groups.consumer.states import GroupState
from kshim.coordination.groups.seen import SeenGroup
from kshim.coordination.groups.states import State
from kshim.http.facts import Facts
from kshim.http.families import Sample
from kshim.http.topics import PARTITION_US
from kshim.storage.interfaces import PartitionEnds
from kshim.turns.slices import Slices

TOPIC_US = 5
CLASSIC, CONSUMER = "classic", "consumer"
"""The protocols of groups."""
Read = Callable[[Facts, Slices], AsyncIterator[Sample]]


async def _of_topics(facts: Facts, slices: Slices) -> AsyncIterator[Sample]:
    for topic in list(facts.cluster.topics.values()):
        await slices.spend(TOPIC_US)
        yield (topic.name,), len(topic.partitions)


async def _of_partitions(
    value: Callable[[PartitionEnds, Partition], float], facts: Facts, slices: Slices
) -> AsyncIterator[Sample]:
    for topic in list(facts.cluster.topics.values()):
        for partition in topic.partitions:
            await slices.spend(PARTITION_US)
            yield (topic.name, str(partition.index)), value(facts.ends, partition)


async def _of_groups(
    values: Callable[[SeenGroup], Iterator[Sample]], facts: Facts, slices: Slices
) -> AsyncIterator[Sample]:
    for group_id in facts.groups.group_ids():
        await slices.spend(GROUP_US)
        group = facts.groups.see(group_id)
        if group is not None:
            for sample in values(group):
                yield sample


async def _of_offsets(
    value: Callable[[OffsetRow], int | None], facts: Facts, slices: Slices
) -> AsyncIterator[Sample]:
    for group_id in facts.groups.group_ids():
        await slices.spend(GROUP_US)
        group = facts.groups.see(group_id)
        if group is None:
            continue
        async for offset in offsets(facts, slices, group):
            found = value(offset)
            if found is not None:
                yield (group_id, offset["topic"], str(offset["partition"])), found


def _members(group: SeenGroup) -> Iterator[Sample]:
    yield (group.group_id,), len(group.members)


def _generation(group: SeenGroup) -> Iterator[Sample]:
    yield (group.group_id,), group.generation


def _states(group: SeenGroup) -> Iterator[Sample]:
    for state in State if group.assignment_epoch is None else GroupState:
        yield (group.group_id, state), group.state is state


async def _counted(facts: Facts, slices: Slices) -> AsyncIterator[Sample]:
    """The number of groups in each state of each protocol."""
    states: dict[str, Iterable[StrEnum]] = {CLASSIC: State, CONSUMER: GroupState}
    counts: Counter[tuple[str, str]] = Counter()
    counts.update({(protocol, str(state)): 0 for protocol in states for state in states[protocol]})
    for group_id in facts.groups.group_ids():
        await slices.spend(GROUP_US)
        group = facts.groups.see(group_id)
        if group is not None:
            protocol = CLASSIC if group.assignment_epoch is None else CONSUMER
            counts[protocol, str(group.state)] += 1
    for labels, count in counts.items():
        yield labels, count


MANY_SAMPLES: Final[Mapping[str, Read]] = {
    "kafka_topic_partitions": _of_topics,
    "kafka_topic_partition_current_offset": partial(
        _of_partitions, lambda ends, partition: ends.offsets(partition.partition_no).high_watermark
    ),
    "kafka_topic_partition_oldest_offset": partial(
        _of_partitions, lambda ends, partition: ends.offsets(partition.partition_no).log_start_offset
    ),
    "kafka_topic_partition_leader": partial(_of_partitions, lambda log, partition: partition.leader),
    "kafka_topic_partition_leader_is_preferred": partial(
        _of_partitions, lambda log, partition: partition.leader in partition.replicas[:1]
    ),
    "kafka_topic_partition_replicas": partial(_of_partitions, lambda log, partition: len(partition.replicas)),
    "kafka_topic_partition_in_sync_replica": partial(
        _of_partitions, lambda log, partition: len(partition.isr)
    ),
    "kafka_topic_partition_under_replicated_partition": partial(
        _of_partitions, lambda log, partition: len(partition.isr) < len(partition.replicas)
    ),
    "kafka_consumergroup_members": partial(_of_groups, _members),
    "kshim_consumergroup_generation": partial(_of_groups, _generation),
    "kshim_consumergroup_state": partial(_of_groups, _states),
    "kshim_groups": _counted,
    "kafka_consumergroup_current_offset": partial(_of_offsets, lambda offset: offset["committed"]),
    "kafka_consumergroup_lag": partial(_of_offsets, lambda offset: offset["lag"]),
}
"""How to read the samples of a family, by its name."""
