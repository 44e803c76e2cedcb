"""`kshim adopt`: copies groups' committed offsets from the upstream, so that the groups go on in kshim.

kshim does so by itself when the first member of a group joins (`moving_in`). The command does it before, for
one group or for many, and shows what it would do. The way back needs no command: kshim also commits offsets
at the upstream.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from kshim.control.commands import Command, Commands, SteeringError
from kshim.upstream.coordinators import ANSWER_S
from kshim.upstream.link import Link, LinkError
from kshim.upstream.there import describe_there
from schemas.error_code import ErrorCode
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

if TYPE_CHECKING:
    from kshim.configs.endpoint import Endpoint
    from kshim.control.coordinators import Coordinators
    from kshim.upstream.moving_in import MovingIn, Offsets
    from kshim.upstream.upstream_groups import UpstreamGroups
    from schemas.messages.offset_commit import OffsetCommitResponse

NEWEST_BY_NAME = 9
"""The newest version of OffsetFetch that names topics; later versions use their ids."""

OffsetRow = tuple[str, int, int]
"""Topic, partition, offset."""


class Adoption:
    """Copies the offsets of groups."""

    def __init__(
        self,
        there: UpstreamGroups,
        coordinators: Coordinators,
        moving_in: MovingIn,
        brokers: Callable[[], Iterable[Endpoint]],
        elsewhere: Callable[[str], str],
        protocols: Sequence[str] = ("classic", "consumer"),
    ) -> None:
        """there: the upstream's groups. coordinators: those of kshim. brokers: returns the addresses of the
        upstream's running brokers. elsewhere: returns where a group is coordinated if not here; else empty.
        protocols: those of the groups that kshim serves.
        """
        self._there = there
        self._coordinators = coordinators
        self._moving_in = moving_in
        self._brokers = brokers
        self._elsewhere = elsewhere
        self._protocols = tuple(protocols)

    def commands(self) -> Commands:
        return {
            "adopt": Command(self.adopt, (str,)),
            "adopt-matching": Command(self.adopt_matching, (str, bool)),
        }

    async def adopt_matching(self, pattern: str, is_dry_run: bool) -> dict[str, list[object]]:
        """Adopt the groups whose whole ids match a regular expression: the offsets of the upstream that are
        not here, or newer there.

        Returns "adopted": rows of group, topic, partition and offset; and "left": rows of group and reason.
        is_dry_run: return the same, but adopt nothing. Raises SteeringError.
        """
        adopted: list[object] = []
        left: list[object] = []
        for group_id in await self._matching(pattern):
            try:
                newer = await self._newer_there(group_id)
                if newer and not is_dry_run:
                    await self._moving_in.adopt(group_id, newer)
            except (SteeringError, LinkError) as error:
                left.append([group_id, str(error)])
                continue
            adopted += [[group_id, *where, newer[where].committed_offset] for where in sorted(newer)]
        return {"adopted": adopted, "left": left}

    async def _matching(self, pattern: str) -> list[str]:
        try:
            is_wanted = re.compile(pattern).fullmatch
        except re.error as error:
            raise SteeringError(f"{pattern!r}: expected a regular expression: {error}") from None
        listed = await self._there.list(self._brokers(), ListGroupsRequest(types_filter=self._protocols))
        if listed.error_code:
            raise SteeringError(f"the upstream does not list its groups: {ErrorCode(listed.error_code).name}")
        return sorted(each.group_id for each in listed.groups if is_wanted(each.group_id))

    async def _newer_there(self, group_id: str) -> Offsets:
        """Return the offsets to adopt. Raises SteeringError, LinkError."""
        if where := self._elsewhere(group_id):
            raise SteeringError(where)
        await self._coordinators.without_members(group_id, "its offsets stay as they are")
        newer = await self._moving_in.newer_there(group_id)
        if newer:
            await self._check_unused(group_id)
        return newer

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
