"""The groups of both sides as clients see them: kshim answers for each group it knows, the upstream for
others.

A group of kshim has a twin at the upstream, with the offsets that kshim has copied there and without members.
Clients do not see the twin. It is deleted with its group.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar

from twisted.internet.defer import Deferred

from kshim.callers import RequestContext
from kshim.callers.once import Once
from kshim.coordination.group_runtime import GroupRuntime
from kshim.coordination.groups.consumer.environment import Visible
from kshim.coordination.groups.consumer.requests import DescribeConsumerGroup, MemberHeartbeat, Patience
from kshim.coordination.groups.refusals import DeleteGroup, DescribeGroup, StableOffsetFetch
from kshim.coordination.groups.states import State
from kshim.turns.promise import Answer, Runnable, run, settled
from kshim.upstream.link import LinkError
from kshim.upstream.member_topics import MemberTopics
from kshim.upstream.topics import Topics
from kshim.upstream.upstream_groups import (
    DELETE,
    DESCRIBE,
    DESCRIBE_CONSUMER,
    FETCH,
    FETCH_STABLE,
    Question,
    UpstreamGroups,
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
from schemas.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup

logger = logging.getLogger(__name__)

R = TypeVar("R")

FIRST_FETCH_BY_ID = 10
ABSENT = frozenset((ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND))
NOT_OURS_TO_SEE = frozenset((ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
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
        once: Once,
        *,
        has_twins: bool,
    ) -> None:
        """groups: kshim's own. members: learns the topics that members name. once: keeps log lines from being
        repeated. has_twins: True if kshim copies offsets to the upstream.
        """
        self._groups = groups
        self._upstream = upstream
        self._topics = topics
        self._members = members
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
        names: frozenset[str] | None = None,
    ) -> Answer[ConsumerGroupHeartbeatResponse]:
        """See `Groups.member_heartbeat`."""
        answer = partial(self._groups.member_heartbeat, context, request, visible, patience, names)
        if self._groups.refusal(context, MemberHeartbeat(request)) is not ErrorCode.NONE:
            return answer()
        learned = self._members.of_heartbeat(request)
        if learned is None:
            return answer()
        unknown = ConsumerGroupHeartbeatResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return run(_answer_knowing(learned, answer, unknown))

    # ---- single requests

    def _join(self, context: RequestContext, request: JoinGroupRequest) -> Answer[JoinGroupResponse]:
        answer = partial(self._groups.submit, context, request)
        learned = self._members.of_join(request)
        if learned is None:
            return answer()
        unknown = JoinGroupResponse(
            error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id=request.member_id
        )
        return run(_answer_knowing(learned, answer, unknown))

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
        upstream. A request that names partitions, as consumers send it, gets the offsets committed in kshim.
        """
        ours: OffsetFetchResponseGroup = await settled(self._groups.submit(context, request))
        is_stable = isinstance(request, StableOffsetFetch)
        wanted = request.request if isinstance(request, StableOffsetFetch) else request
        is_here = ours.error_code or ours.topics or self._groups.see(ours.group_id) is not None
        if wanted.topics is not None or is_here:
            return ours
        return await self._fetched_there(context, FETCH_STABLE if is_stable else FETCH, ours)

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


async def _answer_knowing(learned: Deferred[None], answer: Callable[[], Answer[R]], unknown: R) -> R:
    """Answer a request when its topics are known. unknown: the answer if the upstream cannot be asked."""
    try:
        await learned
    except LinkError as error:
        logger.debug("%s", error)
        return unknown
    return await settled(answer())


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
