"""Hands a group over to the upstream when its first member of the consumer protocol goes there.

Where kshim serves classic groups alone, such a member is the upstream's. Its group may have been kshim's
before: the upstream gets all offsets that kshim has, then kshim deletes the group, and knows it no more. If
kshim ends in between, the group is still here, and the next member repeats it.

A group with classic members stays: nobody can convert it while half of it is here. Its new member is answered
as by Apache Kafka where the migration is switched off (`group.consumer.migration.policy=disabled`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred

from kshim.coordination.groups.pending_offsets import Partition
from kshim.coordination.groups.refusals import DeleteGroup, StableOffsetFetch
from kshim.turns.promise import Promise
from kshim.upstream.coordinators import ANSWER_S
from kshim.upstream.here import own_context
from kshim.upstream.link import LinkError
from kshim.upstream.moving_in import commit_request
from kshim.upstream.shards.mirrored import IN_USE, TAKEN, Offset, offset_of
from kshim.upstream.upstream_groups import offsets_of
from schemas.error_code import ErrorCode
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponsePartitions

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kshim.callers.once import Once
    from kshim.coordination.group_runtime import GroupRuntime
    from kshim.coordination.groups.seen import SeenGroup
    from kshim.upstream.moving_in import MovingIn
    from kshim.upstream.upstream_groups import UpstreamGroups

logger = logging.getLogger(__name__)

BY_NAME = 9
"""The newest version of OffsetCommit that names topics."""
GONE = frozenset((ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,))
"""The upstream's answer about a topic that was deleted."""


class MovingOut:
    """Hands groups over; see the module."""

    def __init__(
        self, groups: GroupRuntime, upstream: UpstreamGroups, moving_in: MovingIn, once: Once
    ) -> None:
        """moving_in: knows which of the upstream's offsets are newer. once: keeps log lines from being
        repeated.
        """
        self._groups = groups
        self._upstream = upstream
        self._moving_in = moving_in
        self._once = once
        self._waiting: dict[str, list[Deferred[ErrorCode]]] = {}
        """Members that wait for a group that is being handed over."""

    def hand_over(self, group_id: str) -> Deferred[ErrorCode]:
        """Hand over a group that kshim has. Fires with NONE when it is the upstream's, else with the answer
        to the member.
        """
        handed: Deferred[ErrorCode] = Deferred()
        self._waiting.setdefault(group_id, []).append(handed)
        if len(self._waiting[group_id]) == 1:
            handing = Deferred.fromCoroutine(self._hand_over(group_id))
            handing.addBoth(self._tell, group_id)
        return handed

    def _tell(self, result: ErrorCode | Failure, group_id: str) -> None:
        for each in self._waiting.pop(group_id):
            each.callback(result)

    async def _hand_over(self, group_id: str) -> ErrorCode:
        group = self._groups.see(group_id)
        if group is None:
            return ErrorCode.NONE
        if group.members and group.assignment_epoch is None:
            return self._refused(group_id)
        try:
            await self._without_members(group)
            before = self._offsets(group_id)
            count = await self._copy(group_id)
        except LinkError as error:
            level = self._once.level(("handed over", group_id))
            logger.log(level, "group %s is not handed over to the upstream yet: %s", group_id, error)
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if self._offsets(group_id) != before:  # somebody has committed meanwhile
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        deleted = await self._ask(DeleteGroup(group_id))
        if deleted.error_code == ErrorCode.NON_EMPTY_GROUP:
            return self._refused(group_id)
        if deleted.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            return ErrorCode(deleted.error_code)
        logger.info(
            "group %s goes over to the upstream, which serves the consumer protocol: it goes on there with"
            " %d offsets",
            *(group_id, count),
        )
        return ErrorCode.NONE

    async def _ask(self, request: object) -> Any:
        """Ask kshim's own coordinator."""
        answer = self._groups.submit(own_context(), request)
        return await answer.deferred() if isinstance(answer, Promise) else answer

    def _offsets(self, group_id: str) -> Mapping[Partition, Offset]:
        """Return the offsets of the group at this moment."""
        group = self._groups.see(group_id)
        committed = {} if group is None else group.committed
        return {where: offset_of(value) for where, value in committed.items()}

    def _refused(self, group_id: str) -> ErrorCode:
        logger.log(
            self._once.level(("is classic", group_id)),
            "group %s has members of the classic protocol here, and members of the consumer protocol are the"
            " upstream's (upstream.groups.protocols): stop the former first",
            group_id,
        )
        return ErrorCode.GROUP_ID_NOT_FOUND

    async def _without_members(self, group: SeenGroup) -> None:
        """Remove members of the consumer protocol, which kshim has served before. They join at the
        upstream.
        """
        members = tuple(
            MemberIdentity(member_id=each.member_id, group_instance_id=each.group_instance_id)
            for each in group.members
        )
        if members:
            leave = LeaveGroupRequest(group_id=group.group_id, members=members)
            await self._ask(leave)

    async def _copy(self, group_id: str) -> int:
        """Commit at the upstream the offsets that are not newer there. Return how many the group has. Raises
        LinkError.
        """
        newer = await self._moving_in.newer_there(group_id)
        ours = await self._committed(group_id)
        older = {where: each for where, each in ours.items() if where not in newer}
        if not older:
            return len(newer)
        link = await self._upstream.coordinators.link(group_id)
        if isinstance(link, ErrorCode):
            raise LinkError(f"the upstream's coordinator of group {group_id}: {link.name}")
        answer = await link.ask(commit_request(group_id, older), newest=BY_NAME, timeout_s=ANSWER_S)
        errors = {each.error_code for topic in answer.topics for each in topic.partitions}
        # A group that has members at the upstream already goes on with the offsets that it has there.
        if refused := errors - TAKEN - GONE - IN_USE:
            names = ", ".join(sorted(ErrorCode(each).name for each in refused))
            raise LinkError(f"the upstream does not take the offsets of group {group_id}: {names}")
        return len(ours.keys() | newer.keys())

    async def _committed(self, group_id: str) -> Mapping[Partition, OffsetFetchResponsePartitions]:
        """Return the offsets that the group has here. Raises LinkError, also while a transaction may change
        them.
        """
        wanted = StableOffsetFetch(OffsetFetchRequestGroup(group_id=group_id, topics=None))
        found = await self._ask(wanted)
        errors = {found.error_code, *(each.error_code for it in found.topics for each in it.partitions)}
        if errors - {ErrorCode.NONE}:
            names = ", ".join(sorted(ErrorCode(each).name for each in errors - {ErrorCode.NONE}))
            raise LinkError(f"the offsets of group {group_id} here: {names}")
        return offsets_of(found)
