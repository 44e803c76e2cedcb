"""The commands that set or reset the committed offsets of a group without members."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, overload

from kshim.callers import RequestContext
from kshim.cluster import NO_LEADER, KnownCluster
from kshim.control.commands import UNKNOWN, Command, Commands, SteeringError, are_of_types
from kshim.control.coordinators import CLIENT_HOST, CLIENT_ID, Coordinators
from kshim.coordination.groups.texts import joined
from schemas.error_code import ErrorCode
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequestGroup

if TYPE_CHECKING:
    from kshim.answering import Broker

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")

LATEST, EARLIEST = -1, -2
NO_OFFSET = -1
ALL = -1
"""Stands for all partitions of a topic, in place of a partition's number."""
LIST_OFFSETS_VERSION = 7
LARGEST_OFFSET = 2**63 - 1

Partition = tuple[str, int]
OffsetRow = tuple[str, int, int]
"""Topic, partition, offset."""
PlanRow = tuple[str, int, int | None, int]
"""Topic, partition, the committed offset, the offset that would be committed."""
OffsetAt = Callable[[Partition, int], Awaitable[int]]
"""Returns the offset of a partition for a time in ms, LATEST or EARLIEST; NO_OFFSET if all records are older.
Raises SteeringError.
"""


class Log(NamedTuple):
    """The offsets to which a partition may be reset."""

    partition: Partition
    committed: int | None
    earliest: int
    latest: int
    at_time: int
    """The first offset at or after the given time; NO_OFFSET if all records are older."""


class SteersOffsets(Protocol):
    """The methods that carry out the commands; `OffsetSteering` describes them."""

    async def set(self, group_id: str, offsets: list[object]) -> list[OffsetRow]: ...
    async def reset(
        self, group_id: str, partitions: list[object], to: str, value: int
    ) -> list[OffsetRow]: ...
    async def plan(self, group_id: str, partitions: list[object], to: str, value: int) -> list[PlanRow]: ...


def offset_commands(steering: SteersOffsets) -> Commands:
    """Return the commands with the arguments that each takes."""
    return {
        "set-offsets": Command(steering.set, (str, list)),
        "reset-offsets": Command(steering.reset, (str, list, str, int)),
        "plan-offsets": Command(steering.plan, (str, list, str, int)),
    }


class OffsetSteering:
    """Carries out `kshim group set-offsets` and `reset-offsets`.

    As with Kafka's tool, a group with members is refused.
    """

    def __init__(self, cluster: KnownCluster, coordinators: Coordinators, offset_at: OffsetAt) -> None:
        self._cluster = cluster
        self._coordinators = coordinators
        self._offset_at = offset_at

    def commands(self) -> Commands:
        return offset_commands(self)

    async def set(self, group_id: str, offsets: list[object]) -> list[OffsetRow]:
        """Commit offsets, and return them when that is durable. offsets: rows of topic, partition, offset."""
        given: dict[Partition, int] = {}
        for row in offsets:
            topic, partition, offset = _row(row, str, int, int)
            if not 0 <= offset <= LARGEST_OFFSET:
                raise SteeringError(f"{topic}-{partition}: {offset} is no offset; they begin at 0")
            given[topic, partition] = offset
        return await self._commit(group_id, given)

    async def reset(self, group_id: str, partitions: list[object], to: str, value: int) -> list[OffsetRow]:
        """Commit the offsets that `plan` returns for these arguments; return them when that is durable."""
        planned = await self.plan(group_id, partitions, to, value)
        return await self._commit(group_id, {(topic, index): after for topic, index, _, after in planned})

    async def plan(self, group_id: str, partitions: list[object], to: str, value: int) -> list[PlanRow]:
        """Return the offsets that `reset` would commit, and commit nothing.

        to: "earliest"; "latest"; "shift", by `value` records; or "time", the first record that is not older
        than `value` ms since 1970, or the end if all are older. partitions: rows of a topic and a partition
        or ALL; empty for all partitions that the group has committed.
        """
        if to not in PLACES:
            raise SteeringError(f"offsets are reset to {', '.join(PLACES)}, not to {to}")
        named = [_row(row, str, int) for row in partitions]
        fetched = await self._coordinators.ask(OffsetFetchRequestGroup(group_id=group_id, topics=None))
        committed = {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in fetched.topics
            for partition in topic.partitions
        }
        chosen = list(self._existing(named)) if named else sorted(committed)
        if not chosen:
            raise SteeringError(f"group {group_id} has committed no offsets: name a topic")
        planned = []
        for partition in sorted(chosen):
            earliest, latest = (
                await self._offset_at(partition, EARLIEST),
                await self._offset_at(partition, LATEST),
            )
            at = await self._offset_at(partition, value) if to == "time" else NO_OFFSET
            log = Log(partition, committed.get(partition), earliest, latest, at)
            planned.append((*partition, committed.get(partition), PLACES[to](log, value)))
        return planned

    async def _commit(self, group_id: str, offsets: Mapping[Partition, int]) -> list[OffsetRow]:
        """Commit offsets as an administrator does: without a member id and a generation."""
        by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, index), offset in offsets.items():
            list(self._existing([(topic, index)]))
            partition = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            by_topic.setdefault(topic, []).append(partition)
        await self._coordinators.without_members(group_id, "its offsets stay as they are")
        topics = tuple(
            OffsetCommitRequestTopic(name=name, partitions=tuple(partitions))
            for name, partitions in by_topic.items()
        )
        response = await self._coordinators.ask(OffsetCommitRequest(group_id=group_id, topics=topics))
        for of_topic in response.topics:
            for answered in of_topic.partitions:
                if answered.error_code != ErrorCode.NONE:
                    error = ErrorCode(answered.error_code).name
                    raise SteeringError(f"{of_topic.name}-{answered.partition_index}: {error}")
        return sorted((topic, index, offset) for (topic, index), offset in offsets.items())

    def _existing(self, named: Iterable[Partition]) -> Iterable[Partition]:
        """The named partitions; for ALL, each one of the topic. Raises SteeringError if one is missing."""
        topics = self._cluster.topics
        for name, index in named:
            topic = topics.get(name)
            if topic is None:
                known = joined(each.name for each in topics.values() if not each.is_internal) or "none"
                raise SteeringError(f"no topic {name}; there are {known}")
            if index != ALL and topic.partition(index) is None:
                raise SteeringError(f"{name} has the partitions 0 to {len(topic.partitions) - 1}")
            indexes = range(len(topic.partitions)) if index == ALL else (index,)
            yield from ((name, each) for each in indexes)


class ListedOffsets:
    """Offsets as the brokers of a local cluster answer ListOffsets."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def at(self, partition: Partition, timestamp: int) -> int:
        """See `OffsetAt`."""
        from kshim.api.list_offsets import list_offsets  # no server needs it to start
        from schemas.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

        (topic, index), cluster = partition, self._broker.cluster
        leader = cluster.topics[topic].partitions[index].leader if topic in cluster.topics else NO_LEADER
        if leader == NO_LEADER:
            raise SteeringError(f"no broker that runs leads {topic}-{index}")
        here = self._broker.config.listener_configs[0].bind
        context = RequestContext(LIST_OFFSETS_VERSION, CLIENT_ID, CLIENT_HOST, here, node_id=leader)
        asked = ListOffsetsTopic(
            name=topic, partitions=(ListOffsetsPartition(partition_index=index, timestamp=timestamp),)
        )
        request = ListOffsetsRequest(replica_id=-1, topics=(asked,))
        response = await list_offsets(replace(self._broker, node_id=leader), context, request)
        answered = response.topics[0].partitions[0]
        if answered.error_code != ErrorCode.NONE:
            raise SteeringError(f"{topic}-{index}: {ErrorCode(answered.error_code).name}")
        return answered.offset


def _shifted(log: Log, by: int) -> int:
    """The committed offset shifted `by` records, but not beyond the log's ends, as in Kafka's tool."""
    if log.committed is None:
        topic, index = log.partition
        raise SteeringError(f"{topic}-{index}: there is no committed offset that could be shifted")
    return min(max(log.committed + by, log.earliest), log.latest)


PLACES: Mapping[str, Callable[[Log, int], int]] = {
    "earliest": lambda log, _: log.earliest,
    "latest": lambda log, _: log.latest,
    "shift": _shifted,
    "time": lambda log, _: log.latest if log.at_time == NO_OFFSET else log.at_time,
}


@overload
def _row(row: object, first: type[A], second: type[B], /) -> tuple[A, B]: ...
@overload
def _row(row: object, first: type[A], second: type[B], third: type[C], /) -> tuple[A, B, C]: ...
def _row(row: object, *types: type) -> tuple[object, ...]:
    """Return a JSON row as a tuple. Raises SteeringError if its values are not of these types."""
    if not are_of_types(row, types):
        raise SteeringError(UNKNOWN)
    return tuple(row)
