"""Makes the answer to a request that is refused with an error instead of being performed.

For most APIs `errors` is enough. Fetch and Metadata need the broker: a Fetch names only what has changed in
its session, and a Metadata answer is useless without the brokers' addresses. In these two answers, a fault
that is limited to one topic leaves the other topics alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from uuid import UUID

from kshim.answering import Broker
from kshim.answering import error_answers as errors
from kshim.callers import RequestContext
from kshim.cluster import KnownCluster
from kshim.faults.answers import Usual
from kshim.faults.named import Kind, named
from kshim.fetching.reads import FIRST_VERSION_BY_TOPIC_ID, refusal
from kshim.fetching.sessions import NO_SESSION, CachedPartition
from kshim.network.dispatch import answer
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from schemas.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)


def names_in(cluster: KnownCluster, api_key: ApiKey, request: object, kind: Kind) -> Iterator[str]:
    """The names of the groups, topics or members in a request."""
    for each in named(api_key, kind, request):
        name = each if isinstance(each, str) else _name(cluster, each)
        if name is not None:
            yield name


def _names_in(broker: Broker, api_key: ApiKey, request: object, kind: Kind) -> Iterator[str]:
    """The same, with the topics of a Fetch that its session knows."""
    yield from names_in(broker.cluster, api_key, request, kind)
    if isinstance(request, FetchRequest) and kind is Kind.TOPIC:
        for cached in broker.fetch_sessions.partitions_of(request.session_id):
            if (name := _name_of(broker, cached)) is not None:
                yield name


def _can_be_refused(broker: Broker, api_key: ApiKey, version: int, request: object, error: ErrorCode) -> bool:
    """True if the answer to this request has a place for the error."""
    is_inside = not errors.is_at_top(api_key, version, error)
    if isinstance(request, FetchRequest) and is_inside:
        return bool(request.topics or broker.fetch_sessions.partitions_of(request.session_id))
    if isinstance(request, MetadataRequest) and is_inside:
        return bool(request.topics or (_asks_for_all(version, request) and broker.cluster.topics))
    return errors.has_place(api_key, version, request, error)


async def _refused(
    broker: Broker,
    context: RequestContext,
    api_key: ApiKey,
    request: object,
    error: ErrorCode,
    topic: str | None,
) -> object:
    """Return the response. topic: the only topic that Fetch and Metadata give the error; None for all."""
    is_inside = not errors.is_at_top(api_key, context.api_version, error)
    if isinstance(request, FetchRequest) and is_inside:
        return _fetch(broker, context.api_version, request, error, topic)
    if isinstance(request, MetadataRequest) and is_inside:
        return await _metadata(broker, context, request, error, topic)
    return errors.answer(api_key, context.api_version, request, error)


def _fetch(
    broker: Broker, version: int, request: FetchRequest, error: ErrorCode, topic: str | None
) -> FetchResponse:
    """Answer with the error for each partition of the session. The session stays open."""
    session = broker.fetch_sessions.open(request, version >= FIRST_VERSION_BY_TOPIC_ID, broker.now_ms())
    if isinstance(session, ErrorCode):
        return FetchResponse(error_code=session)
    answered = []
    for cached in session.partitions():
        if topic in (None, _name_of(broker, cached)):
            data = refusal(cached.wanted.partition, error)
            session.failed(cached, data)
            answered.append(_entry(cached, data))
        elif session.id == NO_SESSION:  # the answer must have all requested partitions
            answered.append(_entry(cached, refusal(cached.wanted.partition, ErrorCode.NONE)))
    return FetchResponse(session_id=session.id, responses=tuple(answered))


def _entry(cached: CachedPartition, data: PartitionData) -> FetchableTopicResponse:
    topic = cached.topic
    return FetchableTopicResponse(topic=topic.name or "", topic_id=topic.topic_id, partitions=(data,))


async def _metadata(
    broker: Broker, context: RequestContext, request: MetadataRequest, error: ErrorCode, topic: str | None
) -> MetadataResponse:
    """Answer with the brokers, and the error for each requested topic that the fault is about. Other topics
    are described as usual.
    """
    from kshim.api.metadata import metadata

    version = context.api_version
    asked = request.topics
    if asked is None or _asks_for_all(version, request):
        return _with_errors(await metadata(broker, context, request), error, topic)
    struck = [each for each in asked if topic in (None, _asked_name(broker, each))]
    others = tuple(each for each in asked if each not in struck)
    made = errors.answer(ApiKey.METADATA, version, replace(request, topics=tuple(struck)), error)
    assert isinstance(made, MetadataResponse)
    response = await metadata(broker, context, replace(request, topics=others))
    return replace(response, topics=(*(response.topics if others else ()), *made.topics))


def _with_errors(response: MetadataResponse, error: ErrorCode, topic: str | None) -> MetadataResponse:
    topics = [
        MetadataResponseTopic(name=each.name, topic_id=each.topic_id, error_code=error)
        if topic in (None, each.name)
        else each
        for each in response.topics
    ]
    return replace(response, topics=tuple(topics))


def _asks_for_all(version: int, request: MetadataRequest) -> bool:
    return request.topics is None or (version == 0 and not request.topics)


def _asked_name(broker: Broker, asked: MetadataRequestTopic) -> str | None:
    return asked.name or _name(broker.cluster, asked.topic_id)


def _name_of(broker: Broker, cached: CachedPartition) -> str | None:
    return cached.topic.name or _name(broker.cluster, cached.topic.topic_id)


def _name(cluster: KnownCluster, topic_id: object) -> str | None:
    """The name of a topic by its id; None if there is no such topic."""
    topic = cluster.topic_by_id(topic_id) if isinstance(topic_id, UUID) else None
    return None if topic is None else topic.name


LOCAL: Final = Usual(answer, _names_in, _can_be_refused, _refused)
"""The usual answers of a local server, and its refusals."""
