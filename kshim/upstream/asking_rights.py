"""Asks the upstream what a client may do, on the client's own connection.

Kafka has no request for this question. But each right is needed by a request that any broker answers and that
changes nothing: the broker checks the right first, and finds only then that it has nothing to do. So whatever
authorizer the upstream has decides, and its log names the client.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple

from kshim.callers import Client, Refused
from kshim.cluster.acl import AclOperation, AclResource
from kshim.turns.aside import Aside
from kshim.turns.promise import Promise
from kshim.upstream.passage import Passage
from kshim.upstream.rights import Right
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.message import MalformedMessage, definition
from schemas.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from schemas.messages.end_txn import EndTxnRequest
from schemas.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from schemas.messages.offset_delete import OffsetDeleteRequest
from schemas.registry import decode_response, encode_request

GROUP: Final = 0
"""The kind of a key in FindCoordinator."""
MOST_AT_ONCE: Final = 1_000
FIRST_FIND_WITH_KEYS: Final = 4
DENIED: Final = frozenset(
    (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    )
)
SAYS_NOTHING: Final = frozenset(
    (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.ILLEGAL_SASL_STATE)
)
"""Errors from which nothing follows."""


class Question(NamedTuple):
    """A request that needs one right, or the same right to several resources."""

    request: Callable[[Sequence[str]], object]
    """Makes the request, given the resources' names."""
    version: int
    """Known to Kafka 2.8 and to 4.4."""
    allowed: Callable[[Any, Right], Mapping[str, bool]]
    """Returns from the response to which resources the client has the right. Raises CannotTell."""
    most: int = 1
    """Limit of names in one request."""


class CannotTell(Exception):
    """The upstream's answer does not show whether the client has a right. str() says what it answered."""


def _is_allowed(error: int) -> bool:
    """Raises CannotTell."""
    if error in SAYS_NOTHING:
        raise CannotTell(f"error {error}")
    return error not in DENIED


def _by_error(response: Any, right: Right) -> dict[str, bool]:
    return {right.name: _is_allowed(response.error_code)}


def _by_operations(bits: int, right: Right) -> bool:
    return bits >= 0 and bool(bits >> right.operation & 1)


def _of_topics(response: MetadataResponse, right: Right) -> dict[str, bool]:
    return {
        topic.name: _is_allowed(topic.error_code) and _by_operations(topic.topic_authorized_operations, right)
        for topic in response.topics
        if topic.name is not None
    }


def _of_cluster(response: DescribeClusterResponse, right: Right) -> dict[str, bool]:
    is_allowed = _is_allowed(response.error_code)
    return {right.name: is_allowed and _by_operations(response.cluster_authorized_operations, right)}


def _of_keys(response: FindCoordinatorResponse, right: Right) -> dict[str, bool]:
    if not response.coordinators:
        return _by_error(response, right)
    return {each.key: _is_allowed(each.error_code) for each in response.coordinators}


def _topics(names: Sequence[str]) -> MetadataRequest:
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=name) for name in names),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )


def _find(names: Sequence[str]) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key=names[0], key_type=GROUP, coordinator_keys=tuple(names))


FIND: Final = Question(_find, 3, _of_keys)
FIND_MANY: Final = Question(_find, FIRST_FIND_WITH_KEYS, _of_keys, MOST_AT_ONCE)
OF_TOPICS: Final = Question(_topics, 9, _of_topics, MOST_AT_ONCE)
QUESTIONS: Final[Mapping[tuple[AclOperation, AclResource], Question]] = {
    (AclOperation.READ, AclResource.GROUP): Question(
        lambda names: HeartbeatRequest(group_id=names[0], generation_id=-1, member_id=""), 4, _by_error
    ),
    (AclOperation.DESCRIBE, AclResource.GROUP): FIND,
    (AclOperation.DELETE, AclResource.GROUP): Question(
        lambda names: OffsetDeleteRequest(group_id=names[0]), 0, _by_error
    ),
    (AclOperation.READ, AclResource.TOPIC): OF_TOPICS,
    (AclOperation.DESCRIBE, AclResource.TOPIC): OF_TOPICS,
    (AclOperation.WRITE, AclResource.TRANSACTIONAL_ID): Question(
        lambda names: EndTxnRequest(
            transactional_id=names[0], producer_id=-1, producer_epoch=-1, committed=False
        ),
        3,
        _by_error,
    ),
    (AclOperation.DESCRIBE, AclResource.CLUSTER): Question(
        lambda _: DescribeClusterRequest(include_cluster_authorized_operations=True), 0, _of_cluster
    ),
}
"""The request for each right: a heartbeat of nobody, the deletion of no offsets, the end of a transaction
that no producer has."""
EVERY: Final = MetadataRequest(topics=None, allow_auto_topic_creation=False)


class Asker:
    """Asks for one client."""

    def __init__(self, passage: Passage, client: Client, aside: Aside) -> None:
        self._passage = passage
        self._client = client
        self._aside = aside

    async def ask(self, wanted: Collection[Right], *, finds_many: bool) -> list[tuple[Right, bool]]:
        """Return for each right whether the client has it. All requests are sent at once. Raises Refused.

        finds_many: True if the upstream knows FindCoordinator with several keys (Kafka 3.0).
        """
        asked = []
        for kind, rights in groupby(sorted(wanted, key=_kind), key=_kind):
            question = QUESTIONS[kind]
            if finds_many and question is FIND:
                question = FIND_MANY
            named = list(rights)
            for first in range(0, len(named), question.most):
                some = named[first : first + question.most]
                request = question.request([each.name for each in some])
                asked.append((question, some, request, self._send(question.version, request)))
        told: list[tuple[Right, bool]] = []
        for question, some, request, answer in asked:
            told += self._told(question, some, self._read(request, question.version, await answer))
        return told

    async def topics(self) -> list[str]:
        """Return all topics that the client may describe. The answer may be large. Raises Refused."""
        frame = await self._send(OF_TOPICS.version, EVERY)
        read = partial(self._read, EVERY, OF_TOPICS.version, frame)
        response = await self._aside.run(read, self._client.address)
        return [each.name for each in response.topics if each.name is not None and not each.error_code]

    # ---- inside

    def _told(
        self, question: Question, rights: Sequence[Right], response: Any
    ) -> Iterable[tuple[Right, bool]]:
        try:
            allowed = question.allowed(response, rights[0])
        except CannotTell as why:
            raise self._refused(str(why)) from why
        return [(each, allowed.get(each.name, False)) for each in rights]

    def _send(self, version: int, request: object) -> Promise[Any]:
        header = RequestHeader(
            api_key=_api_key(request),
            api_version=version,
            correlation_id=0,
            client_id=self._client.client_id,
        )
        return self._passage.ask(encode_request(header, request))

    def _read(self, request: object, version: int, frame: bytes) -> Any:
        try:
            return decode_response(_api_key(request), version, frame)[1]
        except MalformedMessage as error:
            raise self._refused(str(error)) from error

    def _refused(self, why: str) -> Refused:
        client = self._client
        line = f"{client.named(client.client_id)}: the upstream does not say what it may do: {why}"
        return Refused(line, once=why, names=client.client_id)


def _kind(right: Right) -> tuple[AclOperation, AclResource]:
    return right.operation, right.resource


def _api_key(request: object) -> ApiKey:
    api_key = definition(type(request)).api_key
    assert api_key is not None
    return ApiKey(api_key)
