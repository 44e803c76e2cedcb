"""`kshim adopt`: copies a group's committed offsets from the upstream, so that the group goes on in kshim.

The way back needs no command: kshim also commits offsets at the upstream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshim.control.commands import Command, Commands, SteeringError
from kshim.upstream.coordinators import ANSWER_S
from kshim.upstream.link import Link, LinkError
from kshim.upstream.there import describe_there
from schemas.error_code import ErrorCode
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

if TYPE_CHECKING:
    from kshim.control.coordinators import Coordinators
    from kshim.upstream.upstream_groups import UpstreamGroups
    from schemas.messages.offset_commit import OffsetCommitResponse

NEWEST_BY_NAME = 9
"""The newest version of OffsetFetch that names topics; later versions use their ids."""

OffsetRow = tuple[str, int, int]
"""Topic, partition, offset."""


class Adoption:
    """Copies the offsets of groups."""

    def __init__(self, there: UpstreamGroups, coordinators: Coordinators) -> None:
        """there: the upstream's groups. coordinators: those of kshim."""
        self._there = there
        self._coordinators = coordinators

    def commands(self) -> Commands:
        return {"adopt": Command(self.adopt, (str,))}

    async def adopt(self, group_id: str) -> list[OffsetRow]:
        """Commit in kshim all offsets that the group has at the upstream; return them when they are durable.

        Raises SteeringError.
        """
        await self._coordinators.without_members(group_id, "its offsets stay as they are")
        await self._check_unused(group_id)
        try:
            link = await self._there.coordinators.link(group_id)
            if isinstance(link, ErrorCode):
                raise SteeringError(f"the upstream's coordinator of group {group_id}: {link.name}")
            topics = await self._committed(link, group_id)
        except LinkError as error:
            raise SteeringError(str(error)) from None
        if not topics:
            raise SteeringError(f"group {group_id} has committed no offsets at the upstream")
        await self._commit(group_id, topics)
        return sorted(
            (topic.name, each.partition_index, each.committed_offset)
            for topic in topics
            for each in topic.partitions
        )

    async def _check_unused(self, group_id: str) -> None:
        (there,) = await describe_there(self._there, (group_id,))
        if there.is_used:
            raise SteeringError(
                f"group {group_id} is {there.state} at the upstream: stop its members, which would go on"
                " there"
            )

    async def _committed(self, link: Link, group_id: str) -> tuple[OffsetCommitRequestTopic, ...]:
        """Return all offsets that the group has committed at the upstream, as topics of an OffsetCommit."""
        asked = OffsetFetchRequestGroup(group_id=group_id, topics=None)
        request = OffsetFetchRequest(group_id=group_id, topics=None, groups=(asked,), require_stable=True)
        answer = await link.ask(request, newest=NEWEST_BY_NAME, timeout_s=ANSWER_S)
        found = answer.groups[0] if answer.groups else answer
        if found.error_code != ErrorCode.NONE:
            raise SteeringError(f"the offsets of group {group_id}: {ErrorCode(found.error_code).name}")
        topics = []
        for topic in found.topics:
            if unstable := [p for p in topic.partitions if p.error_code != ErrorCode.NONE]:
                error = ErrorCode(unstable[0].error_code).name
                raise SteeringError(f"{topic.name}-{unstable[0].partition_index}: {error}")
            partitions = tuple(
                OffsetCommitRequestPartition(
                    partition_index=each.partition_index,
                    committed_offset=each.committed_offset,
                    committed_leader_epoch=each.committed_leader_epoch,
                    committed_metadata=each.metadata,
                )
                for each in topic.partitions
                if each.committed_offset >= 0
            )
            if partitions:
                topics.append(OffsetCommitRequestTopic(name=topic.name, partitions=partitions))
        return tuple(topics)

    async def _commit(self, group_id: str, topics: tuple[OffsetCommitRequestTopic, ...]) -> None:
        request = OffsetCommitRequest(group_id=group_id, member_id="", topics=topics)
        response: OffsetCommitResponse = await self._coordinators.ask(request)
        for topic in response.topics:
            for each in topic.partitions:
                if each.error_code != ErrorCode.NONE:
                    error = ErrorCode(each.error_code).name
                    raise SteeringError(f"{topic.name}-{each.partition_index}: {error}")
