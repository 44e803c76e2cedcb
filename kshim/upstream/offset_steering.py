"""`kshim group set-offsets` and `reset-offsets` in front of an upstream, which knows where partitions end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from kshim.control.commands import Commands, SteeringError
from kshim.control.coordinators import Coordinators
from kshim.control.offsets import (
    EARLIEST,
    LATEST,
    OffsetRow,
    OffsetSteering,
    Partition,
    PlanRow,
    offset_commands,
)
from kshim.coordination.interfaces import Groups
from kshim.upstream.ends import Ends
from kshim.upstream.link import LinkError
from kshim.upstream.mirror import Mirror
from kshim.upstream.topics import Topics

Found = Mapping[int, Mapping[Partition, int]]
"""Offsets of partitions, by requested timestamp."""


class UpstreamOffsetSteering:
    """Learns from the upstream what a command needs, then runs the command."""

    def __init__(
        self, mirror: Mirror, groups: Groups, coordinators: Coordinators, topics: Topics, ends: Ends
    ) -> None:
        self._mirror = mirror
        self._groups = groups
        self._coordinators = coordinators
        self._topics = topics
        self._ends = ends

    def commands(self) -> Commands:
        return offset_commands(self)

    async def set(self, group_id: str, offsets: list[object]) -> list[OffsetRow]:
        """See `OffsetSteering.set`."""
        await self._learn(_names(offsets))
        return await self._steering({}).set(group_id, offsets)

    async def reset(self, group_id: str, partitions: list[object], to: str, value: int) -> list[OffsetRow]:
        """See `OffsetSteering.reset`."""
        steering = await self._informed(group_id, partitions, to, value)
        return await steering.reset(group_id, partitions, to, value)

    async def plan(self, group_id: str, partitions: list[object], to: str, value: int) -> list[PlanRow]:
        """See `OffsetSteering.plan`."""
        steering = await self._informed(group_id, partitions, to, value)
        return await steering.plan(group_id, partitions, to, value)

    async def _informed(self, group_id: str, partitions: list[object], to: str, value: int) -> OffsetSteering:
        """Return the steering of a group whose partitions' ends are known."""
        group = self._groups.see(group_id)
        committed = () if group is None else group.partitions
        names = _names(partitions) or list(dict.fromkeys(name for name, _ in committed))
        await self._learn(names)
        times = (EARLIEST, LATEST, value) if to == "time" else (EARLIEST, LATEST)
        found = {time: await self._ends.at(names, time) for time in times}
        return self._steering(found)

    def _steering(self, found: Found) -> OffsetSteering:
        return OffsetSteering(self._mirror, self._coordinators, partial(_offset_at, found))

    async def _learn(self, names: Iterable[str]) -> None:
        missing = self._topics.missing(names)
        if missing:
            try:
                await self._topics.learn(missing)
            except LinkError as error:
                raise SteeringError(str(error)) from None


async def _offset_at(found: Found, partition: Partition, timestamp: int) -> int:
    offset = found.get(timestamp, {}).get(partition)
    if offset is None:
        topic, index = partition
        raise SteeringError(f"{topic}-{index}: the upstream does not answer where it begins and ends")
    return offset


def _names(rows: Iterable[object]) -> list[str]:
    """The topic names in rows that are not checked yet."""
    first = [row[0] for row in rows if isinstance(row, list) and row]
    return list(dict.fromkeys(name for name in first if isinstance(name, str)))
