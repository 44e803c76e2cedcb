"""Groups as JSON values: one row for each, which also says how far the group is behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple, NotRequired, Protocol, TypedDict

from kshim.cluster import KnownCluster
from kshim.control.long import in_order
from kshim.coordination.groups.seen import SeenGroup
from kshim.coordination.interfaces import Groups
from kshim.storage.interfaces import PartitionEnds
from kshim.turns.slices import Slices

ROW_US = 60
OFFSET_US = 10
MOST_AT_ONCE = 200
"""Offsets that are read in one go, before other requests may be served."""


class GroupFacts(TypedDict):
    """A group as JSON, without its members and offsets."""

    group_id: str
    state: str
    generation: int
    protocol_type: str
    protocol: str
    leader: str
    coordinator: int
    assignment_epoch: NotRequired[int]
    """The epoch of the target; only a consumer group has this field."""


class GroupRow(GroupFacts):
    """The row of a group in a listing."""

    members: int
    lag: int | None


class OffsetRow(TypedDict):
    """The offset that a group has committed for a partition."""

    topic: str
    partition: int
    committed: int
    high_watermark: int | None
    lag: int | None
    metadata: str


class Shown(Protocol):
    """The parts of a server that rows are made from."""

    @property
    def cluster(self) -> KnownCluster: ...
    @property
    def groups(self) -> Groups: ...
    @property
    def ends(self) -> PartitionEnds: ...


async def row(shown: Shown, slices: Slices, group_id: str) -> GroupRow | None:
    """The row of one group; None if the group is gone."""
    await slices.spend(ROW_US)
    group = shown.groups.see(group_id)
    if group is None:
        return None
    lag = (await progress(shown, slices, group)).lag
    return {**facts_of(group), "members": len(group.members), "lag": lag}


def facts_of(group: SeenGroup) -> GroupFacts:
    facts: GroupFacts = {
        "group_id": group.group_id,
        "state": str(group.state),
        "generation": group.generation,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "leader": group.leader,
        "coordinator": group.node_id,
    }
    if group.assignment_epoch is not None:
        facts["assignment_epoch"] = group.assignment_epoch
    return facts


class Progress(NamedTuple):
    """A group's progress, summed over its partitions."""

    committed: int
    """The sum of the committed offsets."""
    lag: int | None
    """Records behind; None if it is known for none of the partitions."""


async def progress(shown: Shown, slices: Slices, group: SeenGroup) -> Progress:
    """Add up a group's offsets and lags. O(partitions), in slices."""
    offsets, behind, is_known = 0, 0, False
    partitions = list(group.partitions)
    for first in range(0, len(partitions), MOST_AT_ONCE):
        some = partitions[first : first + MOST_AT_ONCE]
        await slices.spend(OFFSET_US * len(some))
        for topic, partition in some:
            committed = group.committed.get((topic, partition))
            if committed is None:
                continue
            offsets += committed.offset
            end = high_watermark(shown.cluster, shown.ends, topic, partition)
            if end is not None:
                behind, is_known = behind + max(0, end - committed.offset), True
    return Progress(offsets, behind if is_known else None)


async def offsets(shown: Shown, slices: Slices, group: SeenGroup) -> AsyncIterator[OffsetRow]:
    """A group's committed offsets, in the order of topics and partitions, each with its lag."""
    count = len(group.committed)
    for place, (topic, partition) in enumerate(await in_order(slices, list(group.partitions))):
        if place % MOST_AT_ONCE == 0:
            await slices.spend(OFFSET_US * max(1, min(MOST_AT_ONCE, count - place)))
        committed = group.committed.get((topic, partition))
        if committed is None:
            continue
        end = high_watermark(shown.cluster, shown.ends, topic, partition)
        yield {
            "topic": topic,
            "partition": partition,
            "committed": committed.offset,
            "high_watermark": end,
            "lag": None if end is None else max(0, end - committed.offset),
            "metadata": committed.metadata,
        }


def high_watermark(cluster: KnownCluster, ends: PartitionEnds, topic: str, partition: int) -> int | None:
    """A partition's high watermark; None if the partition does not exist, or only an upstream knows it."""
    known = cluster.topics.get(topic)
    found = None if known is None else known.partition(partition)
    end = -1 if found is None else ends.offsets(found.partition_no).high_watermark
    return None if end < 0 else end
