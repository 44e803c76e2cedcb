"""The groups of both sides as clients see them: kshim answers for each group it knows, the upstream for
others.

A group of kshim has a twin at the upstream, with the offsets that kshim has copied there and without members.
Clients do not see the twin. It is deleted with its group.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, DeferredList, FirstError

from kshim.callers import RequestContext
from kshim.callers.once import Once
from kshim.coordination.group_runtime import GroupRuntime
from kshim.coordination.groups.consumer.environment import Visible
from kshim.coordination.groups.consumer.member import JOINS
from kshim.coordination.groups.consumer.requests import DescribeConsumerGroup, MemberHeartbeat, Patience
from kshim.coordination.groups.consumer.topic_names import UNPREPARED, Prepared
from kshim.coordination.groups.refusals import DeleteGroup, DescribeGroup, StableOffsetFetch
from kshim.coordination.groups.states import State
from kshim.turns.promise import Answer, Runnable, run, settled
from kshim.upstream.link import LinkError
from kshim.upstream.member_topics import MemberTopics
from kshim.upstream.moving_in import MovingIn
from kshim.upstream.one_side import OneSide, UsedThere
from kshim.upstream.topics import Topics
from kshim.upstream.upstream_groups import (
    DELETE,
    DESCRIBE,
    DESCRIBE_CONSUMER,
    FETCH,
    FETCH_STABLE,
    NOT_OURS_TO_SEE,
    Question,
    UpstreamGroups,
    offsets_of,
)
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from schemas.messages.delete_groups import DeletableGroupResult
from schemas.messages.describe_groups import DescribedGroup
from schemas.messages.join_group import JoinGroupRequest, JoinGroupResponse
from schemas.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from schemas.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

logger = logging.getLogger(__name__)

R = TypeVar("R")

FIRST_FETCH_BY_ID = 10
ABSENT = frozenset((ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND))
STOPS_DELETION = frozenset(
    (
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    )
)
"""Errors of deleting the twin that keep kshim from deleting its group."""


class MergedGroups:
    """Implements `kshim.coordination.interfaces.Groups`."""

    def __init__(
        self,
        groups: GroupRuntime,
        upstream: UpstreamGroups,
        topics: Topics,
        members: MemberTopics,
        moving_in: MovingIn,
        one_side: OneSide,
        once: Once,
        *,
        has_twins: bool,
    ) -> None:
        """groups: kshim's own. members: learns the topics that members name. moving_in: adopts the offsets of
        groups that come here. one_side: keeps groups from having members at both sides. once: keeps log
        lines from being repeated. has_twins: True if kshim copies offsets to the upstream.
        """
        self._groups = groups
        self._upstream = upstream
        self._topics = topics
        self._members = members
        self._moving_in = moving_in
        self._one_side = one_side
        self._once = once
        self._has_twins = has_twins
        self._merges: dict[type, Callable[[RequestContext, Any], Runnable[object] | Answer[object]]] = {
            DescribeGroup: self._describe,
            DescribeConsumerGroup: self._describe_consumer,
            JoinGroupRequest: self._join,
            DeleteGroup: self._delete,
            OffsetDeleteRequest: self._delete_offsets,
            OffsetFetchRequestGroup: self._fetch,
            StableOffsetFetch: self._fetch,
        }
        self.heartbeat = groups.heartbeat
        self.commit = groups.commit
        self.list_groups = groups.list_groups
        self.refusal = groups.refusal
        self.shard_for = groups.shard_for
        self.large_subscriptions = groups.large_subscriptions
        self.latest_large_set = groups.latest_large_set
        self.waits_for = groups.waits_for
        self.group_ids = groups.group_ids
        self.see = groups.see
        self.write_marker = groups.write_marker
        self.topics_deleted = groups.topics_deleted

    def submit(self, context: RequestContext, request: Any) -> Any:
        """See `Groups.submit`."""
        merge = self._merges.get(type(request))
        if merge is None:
            return self._groups.submit(context, request)
        answer = merge(context, request)
        return run(answer) if isinstance(answer, CoroutineType) else answer

    def member_heartbeat(
        self,
        context: RequestContext,
        request: ConsumerGroupHeartbeatRequest,
        visible: Visible,
        patience: Patience,
        prepared: Prepared = UNPREPARED,
    ) -> Answer[ConsumerGroupHeartbeatResponse]:
        """See `Groups.member_heartbeat`."""
        answer = partial(self._member_heartbeat, context, request, visible, patience, prepared)
        if self._groups.refusal(context, MemberHeartbeat(request)) is not ErrorCode.NONE:
            return answer()
        adopted = self._moving_in.before_join(request.group_id) if request.member_epoch == JOINS else None
        needed = _all_of(self._members.of_heartbeat(request), adopted)
        if not needed:
            return answer()
        return run(
            _answer_knowing(needed, answer, lambda error: ConsumerGroupHeartbeatResponse(error_code=error))
        )

    def _member_heartbeat(
        self, context: RequestContext, request: ConsumerGroupHeartbeatRequest, *arguments: Any
    ) -> Answer[ConsumerGroupHeartbeatResponse]:
        """Answer a heartbeat whose topics are known. Like Kafka, refuse a topic that the upstream hides."""
        if request.subscribed_topic_names and self._topics.hides(request.subscribed_topic_names):
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return self._groups.member_heartbeat(context, request, *arguments)

    # ---- single requests

    def _join(self, context: RequestContext, request: JoinGroupRequest) -> Answer[JoinGroupResponse]:
        def refused(error: ErrorCode) -> JoinGroupResponse:
            return JoinGroupResponse(error_code=error, member_id=request.member_id)

        def answer() -> Answer[JoinGroupResponse]:
            if self._one_side.is_taken(request.group_id):
                return refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            return self._groups.submit(context, request)

        adopted = unused = None
        if self._groups.refusal(context, request) is ErrorCode.NONE:
            unused = self._one_side.before_classic_join(request.group_id, request.member_id)
            adopted = None if request.member_id else self._moving_in.before_join(request.group_id)
        needed = _all_of(self._members.of_join(request), unused, adopted)
        return run(_answer_knowing(needed, answer, refused)) if needed else answer()

    async def _describe(self, context: RequestContext, request: DescribeGroup) -> DescribedGroup:
        ours: DescribedGroup = await settled(self._groups.submit(context, request))
        if ours.group_state != State.DEAD or ours.error_code not in ABSENT or self._knows(request.group_id):
            return ours
        theirs: DescribedGroup = await self._upstream.ask(DESCRIBE, request.group_id, context.api_version)
        is_absent = theirs.error_code in ABSENT and theirs.group_state == State.DEAD
        if self._is_hidden(theirs.error_code, request.group_id) or (is_absent and not theirs.error_code):
            return ours
        return theirs

    async def _describe_consumer(
        self, context: RequestContext, request: DescribeConsumerGroup
    ) -> DescribedConsumerGroup:
        ours: DescribedConsumerGroup = await settled(self._groups.submit(context, request))
        if ours.error_code != ErrorCode.GROUP_ID_NOT_FOUND or self._knows(request.group_id):
            return ours
        group_id, newest = request.group_id, context.api_version
        theirs: DescribedConsumerGroup = await self._upstream.ask(DESCRIBE_CONSUMER, group_id, newest)
        is_absent = theirs.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        return ours if is_absent or self._is_hidden(theirs.error_code, group_id) else theirs

    def _knows(self, group_id: str) -> bool:
        return self._groups.see(group_id) is not None

    async def _delete(self, context: RequestContext, request: DeleteGroup) -> DeletableGroupResult:
        group = self._groups.see(request.group_id)
        if group is not None and self._has_twins and not group.members:
            twin: DeletableGroupResult = await self._upstream.ask(DELETE, request.group_id)
            if twin.error_code in STOPS_DELETION:
                return twin
            self._is_hidden(twin.error_code, request.group_id)
        ours: DeletableGroupResult = await settled(self._groups.submit(context, request))
        return ours if group is not None else await self._delete_there(ours)

    async def _delete_there(self, ours: DeletableGroupResult) -> DeletableGroupResult:
        """Delete a group that only the upstream may know."""
        if ours.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
            return ours
        return await self._upstream.ask(DELETE, ours.group_id)

    async def _delete_offsets(
        self, context: RequestContext, request: OffsetDeleteRequest
    ) -> OffsetDeleteResponse:
        """Delete at the twin what kshim has deleted. For a group that kshim does not know, ask the upstream
        alone.
        """
        ours: OffsetDeleteResponse = await settled(self._groups.submit(context, request))
        if ours.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            return await self._upstream.delete_offsets(request)
        deleted = _deleted(request.group_id, ours)
        if self._has_twins and deleted.topics:
            theirs = await self._upstream.delete_offsets(deleted)
            errors = {theirs.error_code, *(each.error_code for t in theirs.topics for each in t.partitions)}
            if errors - ABSENT:
                logger.log(
                    self._once.level(("offsets", request.group_id)),
                    "offsets of group %s were deleted here, and are still at the upstream: error %s",
                    *(request.group_id, ", ".join(str(error) for error in sorted(errors - ABSENT))),
                )
        return ours

    async def _fetch(
        self, context: RequestContext, request: OffsetFetchRequestGroup | StableOffsetFetch
    ) -> OffsetFetchResponseGroup:
        """Answer an OffsetFetch. A request for all offsets, as tools send it, may be answered by the
        upstream. A request that names partitions, as consumers send it, gets the offsets committed in kshim;
        those of a group that is not known here are adopted first.
        """
        is_stable = isinstance(request, StableOffsetFetch)
        wanted = request.request if isinstance(request, StableOffsetFetch) else request
        question = FETCH_STABLE if is_stable else FETCH
        is_theirs = wanted.group_id in self._moving_in.theirs and self._groups.see(wanted.group_id) is None
        if is_theirs and wanted.topics is not None:
            return _only(await self._upstream.ask(question, wanted.group_id), wanted.topics)
        if wanted.topics is not None and self._groups.refusal(context, request) is ErrorCode.NONE:
            try:
                if (adopted := self._moving_in.before_fetch(wanted.group_id)) is not None:
                    await adopted
                if wanted.group_id in self._moving_in.theirs:
                    raise LinkError(f"{wanted.group_id} is a streams group of the upstream")
            except LinkError as error:
                logger.debug("%s", error)
                return OffsetFetchResponseGroup(
                    group_id=wanted.group_id, error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                )
        ours: OffsetFetchResponseGroup = await settled(self._groups.submit(context, request))
        is_here = ours.error_code or ours.topics or self._groups.see(ours.group_id) is not None
        if wanted.topics is not None or is_here:
            return ours
        return await self._fetched_there(context, question, ours)

    async def _fetched_there(
        self,
        context: RequestContext,
        question: Question[OffsetFetchResponseGroup],
        ours: OffsetFetchResponseGroup,
    ) -> OffsetFetchResponseGroup:
        theirs: OffsetFetchResponseGroup = await self._upstream.ask(question, ours.group_id)
        if self._is_hidden(theirs.error_code, ours.group_id):
            return ours
        if context.api_version >= FIRST_FETCH_BY_ID:
            try:
                await self._topics.learn(self._topics.missing(topic.name for topic in theirs.topics))
            except LinkError:
                return OffsetFetchResponseGroup(
                    group_id=ours.group_id, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE
                )
        return theirs

    def _is_hidden(self, error_code: int, group_id: str) -> bool:
        """True if the upstream does not let kshim see a group. Then kshim's clients do not see it either."""
        if error_code not in NOT_OURS_TO_SEE:
            return False
        level = self._once.level("groups at the upstream")
        logger.log(level, "the upstream hides groups from kshim, as group %s: error %d", group_id, error_code)
        return True


def _all_of(*needed: Deferred[None] | None) -> list[Deferred[None]]:
    return [each for each in needed if each is not None]


async def _answer_knowing(
    needed: list[Deferred[None]], answer: Callable[[], Answer[R]], refused: Callable[[ErrorCode], R]
) -> R:
    """Answer a request when what it needs is known. refused: makes an answer with an error, if the upstream
    cannot be asked, or has the group's members.
    """
    try:
        await DeferredList(needed, fireOnOneErrback=True, consumeErrors=True)
    except FirstError as error:
        if error.subFailure.trap(LinkError, UsedThere) is UsedThere:
            return refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        logger.debug("%s", error.subFailure.value)
        return refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return await settled(answer())


def _only(
    found: OffsetFetchResponseGroup, topics: Iterable[OffsetFetchRequestTopics]
) -> OffsetFetchResponseGroup:
    """Return the part of all offsets of a group that a request names."""
    if found.error_code:
        return found
    offsets = offsets_of(found)
    absent = OffsetFetchResponsePartitions(committed_offset=-1, metadata="")
    return replace(
        found,
        topics=tuple(
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    replace(offsets.get((topic.name, index), absent), partition_index=index)
                    for index in topic.partition_indexes
                ),
            )
            for topic in topics
        ),
    )


def _deleted(group_id: str, answer: OffsetDeleteResponse) -> OffsetDeleteRequest:
    """Return a request for the partitions that were deleted according to `answer`."""
    topics = (
        OffsetDeleteRequestTopic(
            name=topic.name,
            partitions=tuple(
                OffsetDeleteRequestPartition(partition_index=each.partition_index)
                for each in topic.partitions
                if not each.error_code
            ),
        )
        for topic in answer.topics
    )
    return OffsetDeleteRequest(group_id=group_id, topics=tuple(topic for topic in topics if topic.partitions))
