"""Asks the upstream's own coordinators about the groups that the upstream has.

Questions about several groups in one turn of the reactor share requests: one for each coordinator, or as few
as hold MOST_AT_ONCE groups each. No question errbacks. If a coordinator cannot be asked, each of its groups
gets an error, and clients ask again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from twisted.internet.defer import Deferred, DeferredSemaphore, gatherResults

from kshim.configs.endpoint import Endpoint
from kshim.upstream.coordinators import ANSWER_S, UpstreamCoordinators, by_place
from kshim.upstream.link import Link, LinkError
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from schemas.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from schemas.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest
from schemas.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from schemas.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from schemas.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from schemas.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
)

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kshim.storage.reactor import Reactor


logger = logging.getLogger(__name__)

MOST_AT_ONCE = 200
"""Limit of groups in one request."""
UNDER_WAY = 4
"""Limit of requests at the same time; others wait for them."""
NEWEST = 32767
CLASSIC = "classic"
FIRST_LIST_WITH_TYPES = 5
NOT_OURS_TO_SEE = frozenset((ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
"""Errors about groups that the upstream does not let kshim see."""


A = TypeVar("A", covariant=True)
"""An answer about one group."""


class Question(NamedTuple, Generic[A]):
    """A question that one request can ask about many groups."""

    api_key: ApiKey
    request: Callable[[Sequence[str]], object]
    answers: Callable[[Sequence[str], Any], Iterable[tuple[str, A]]]
    """Divides a response into answers by group, given the groups that were asked for."""
    refusal: Callable[[str, ErrorCode], A]
    """Makes the answer about a group whose coordinator cannot be asked."""
    newest: int = NEWEST
    first_with_many: int = 0
    """The first version that takes several groups."""
    unserved: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE
    """The answer about each group of a broker that does not serve the API."""


def _fetch(group_ids: Sequence[str], *, is_stable: bool = False) -> OffsetFetchRequest:
    groups = tuple(OffsetFetchRequestGroup(group_id=each, topics=None) for each in group_ids)
    return OffsetFetchRequest(group_id=group_ids[0], topics=None, groups=groups, require_stable=is_stable)


def _fetched(group_ids: Sequence[str], response: Any) -> Iterable[tuple[str, OffsetFetchResponseGroup]]:
    if response.groups:
        return ((each.group_id, each) for each in response.groups)
    only = OffsetFetchResponseGroup(
        group_id=group_ids[0], error_code=response.error_code, topics=response.topics
    )
    return ((only.group_id, only),)


DESCRIBE = Question(
    ApiKey.DESCRIBE_GROUPS,
    lambda group_ids: DescribeGroupsRequest(groups=tuple(group_ids)),
    lambda _, response: ((each.group_id, each) for each in response.groups),
    lambda group_id, error: DescribedGroup(group_id=group_id, error_code=error),
)
DESCRIBE_CONSUMER = Question(
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    lambda group_ids: ConsumerGroupDescribeRequest(group_ids=tuple(group_ids)),
    lambda _, response: ((each.group_id, each) for each in response.groups),
    lambda group_id, error: DescribedConsumerGroup(group_id=group_id, error_code=error),
    unserved=ErrorCode.GROUP_ID_NOT_FOUND,
)
"""Asks about groups of the consumer protocol (KIP-848), which DESCRIBE does not find."""
DELETE = Question(
    ApiKey.DELETE_GROUPS,
    lambda group_ids: DeleteGroupsRequest(groups_names=tuple(group_ids)),
    lambda _, response: ((each.group_id, each) for each in response.results),
    lambda group_id, error: DeletableGroupResult(group_id=group_id, error_code=error),
)
FETCH = Question(
    ApiKey.OFFSET_FETCH,
    _fetch,
    _fetched,
    lambda group_id, error: OffsetFetchResponseGroup(group_id=group_id, error_code=error),
    newest=9,  # later versions use topic ids, not names
    first_with_many=8,
)
"""All offsets that a group has committed."""
FETCH_STABLE = FETCH._replace(request=partial(_fetch, is_stable=True))
"""Like FETCH, but without offsets that an open transaction may still change."""

_Waiting = dict[str, list[Deferred[Any]]]


class UpstreamGroups:
    """Asks the upstream about its groups."""

    def __init__(self, reactor: Reactor, coordinators: UpstreamCoordinators) -> None:
        self._reactor = reactor
        self.coordinators = coordinators
        self._gathered: dict[tuple[Question[object], int], _Waiting] = {}
        """The questions of this turn of the reactor, by question and newest version."""
        self._place = DeferredSemaphore(UNDER_WAY)

    def ask(self, question: Question[A], group_id: str, newest: int = NEWEST) -> Deferred[A]:
        """Ask about one group; fires with the answer. newest: the newest version to use."""
        if not self._gathered:
            self._reactor.callLater(0, self._send)
        of_question = self._gathered.setdefault((question, min(newest, question.newest)), {})
        answer: Deferred[A] = Deferred()
        of_question.setdefault(group_id, []).append(answer)
        return answer

    def ask_many(self, question: Question[A], group_ids: Iterable[str]) -> Deferred[list[A]]:
        """Ask about some groups; fires with the answers in the groups' order."""
        return gatherResults([self.ask(question, each) for each in group_ids])

    async def delete_offsets(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        """Delete offsets at the group's coordinator; return its answer."""
        try:
            link = await self.coordinators.link(request.group_id)
            if isinstance(link, ErrorCode):
                return OffsetDeleteResponse(error_code=link)
            answer: OffsetDeleteResponse = await link.ask(request, timeout_s=ANSWER_S)
        except LinkError as error:
            logger.debug("%s", error)
            return OffsetDeleteResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return answer

    async def list(self, brokers: Iterable[Endpoint], request: ListGroupsRequest) -> ListGroupsResponse:
        """Return the groups of all these brokers, or the first answer with an error."""
        asked = [Deferred.fromCoroutine(self._list(address, request)) for address in brokers]
        found: list[ListedGroup] = []
        for answer in asked:
            response = await answer
            if response.error_code:
                return response
            found += response.groups
        return ListGroupsResponse(groups=tuple(found))

    # ---- inside

    def _send(self) -> None:
        gathered, self._gathered = self._gathered, {}
        for (question, newest), waiting in gathered.items():
            group_ids = list(waiting)
            for first in range(0, len(group_ids), MOST_AT_ONCE):
                some = {each: waiting[each] for each in group_ids[first : first + MOST_AT_ONCE]}
                self._place.run(self._ask, question, newest, some).addErrback(_log_fault)

    async def _ask_all(self, question: Question[object], newest: int, waiting: _Waiting) -> None:
        try:
            placed, errors = by_place((await self.coordinators.find(list(waiting))).items())
        except LinkError as error:
            logger.debug("%s", error)
            placed, errors = {}, dict.fromkeys(waiting, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        for group_id, code in errors.items():
            _answer(waiting, group_id, question.refusal(group_id, code))
        for address, group_ids in placed.items():
            await self._ask_one(address, question, newest, group_ids, waiting)
        for group_id in list(waiting):  # the upstream has left these out
            _answer(waiting, group_id, question.refusal(group_id, ErrorCode.COORDINATOR_NOT_AVAILABLE))

    def _ask(self, question: Question[object], newest: int, waiting: _Waiting) -> Deferred[None]:
        return Deferred.fromCoroutine(self._ask_all(question, newest, waiting))

    async def _ask_one(
        self,
        address: Endpoint,
        question: Question[object],
        newest: int,
        group_ids: Sequence[str],
        waiting: _Waiting,
    ) -> None:
        """Ask one coordinator. Groups that it does not answer stay in `waiting`."""
        try:
            link = await self.coordinators.link_to(address)
            if not link.serves(question.api_key):
                for group_id in group_ids:
                    _answer(waiting, group_id, question.refusal(group_id, question.unserved))
                return
            takes_many = link.version(question.api_key, newest) >= question.first_with_many
            for some in [group_ids] if takes_many else [[each] for each in group_ids]:
                response = await link.ask(question.request(some), newest=newest, timeout_s=ANSWER_S)
                for group_id, answer in question.answers(some, response):
                    _answer(waiting, group_id, answer)
        except LinkError as error:
            logger.debug("%s", error)

    async def _list(self, address: Endpoint, request: ListGroupsRequest) -> ListGroupsResponse:
        try:
            link = await self.coordinators.link_to(address)
            has_types = link.version(ApiKey.LIST_GROUPS) >= FIRST_LIST_WITH_TYPES
            if not has_types and request.types_filter and CLASSIC not in map(str.lower, request.types_filter):
                return ListGroupsResponse()
            return await _listed(link, request, has_types=has_types)
        except LinkError as error:
            logger.debug("%s", error)
            return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)


async def _listed(link: Link, request: ListGroupsRequest, *, has_types: bool) -> ListGroupsResponse:
    """List a broker's groups. All groups of a broker that knows no types are classic. Raises LinkError."""
    asked = request if has_types else ListGroupsRequest(states_filter=request.states_filter)
    response: ListGroupsResponse = await link.ask(asked, timeout_s=ANSWER_S)
    if has_types:
        return response
    groups = (
        ListedGroup(
            group_id=each.group_id,
            protocol_type=each.protocol_type,
            group_state=each.group_state,
            group_type=CLASSIC,
        )
        for each in response.groups
    )
    return ListGroupsResponse(error_code=response.error_code, groups=tuple(groups))


def offsets_of(
    fetched: OffsetFetchResponseGroup,
) -> Mapping[tuple[str, int], OffsetFetchResponsePartitions]:
    """Return the committed offsets in an answer to FETCH, as partitions of OffsetFetch, by topic and
    partition.
    """
    return {
        (topic.name, each.partition_index): each
        for topic in fetched.topics
        for each in topic.partitions
        if each.error_code == ErrorCode.NONE and each.committed_offset >= 0
    }


def _answer(waiting: _Waiting, group_id: str, answer: object) -> None:
    for each in waiting.pop(group_id, ()):
        each.callback(answer)


def _log_fault(failure: Failure) -> None:
    logger.error("internal error: %s", failure.getTraceback())
