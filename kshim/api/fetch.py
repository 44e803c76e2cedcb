"""Fetch (1): record batches from an offset on, at once or when enough have come. v7 fetch sessions (KIP-227);
v11 from any replica (KIP-392); v13 names topics by id (KIP-516); v16 tells who leads (KIP-951).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from kshim.api.leadership import node_endpoints
from kshim.api.parked_fetch import ParkedFetch
from kshim.api.partition_reads import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    PartitionRead,
    PartitionReads,
    refusal,
)
from kshim.context import Broker, RequestContext
from kshim.fetch_sessions import FINAL, FULL, NO_SESSION, FetchSession
from schemas.error_code import ErrorCode
from schemas.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, NodeEndpoint

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

FIRST_VERSION_BY_TOPIC_ID = 13


def fetch(
    broker: Broker, context: RequestContext, request: FetchRequest
) -> FetchResponse | Deferred[FetchResponse]:
    """Answer at once if there are min_bytes, or an error, or no time; else park until one of these.

    A parked Fetch is also finished by `context.hurry`: what is behind it on its connection would have to
    wait.
    """
    by_topic_id = context.api_version >= FIRST_VERSION_BY_TOPIC_ID
    session = broker.fetch_sessions.open(request, by_topic_id, broker.now_ms())
    if isinstance(session, ErrorCode):
        return FetchResponse(error_code=session)
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return _refuse_all(session, ErrorCode.UNKNOWN_SERVER_ERROR)
    epoch = session.epoch

    def answer(reads: PartitionReads) -> FetchResponse:
        if session.epoch != epoch:  # another request of the session came while this one was waiting
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.id)
        return _answer(broker, context, request, session, reads)

    reads = PartitionReads(broker, context.api_version, request).read(session.due())
    all_unknown = len(reads.unknown) == len(session)
    if request.max_wait_ms <= 0 or reads.missing_bytes <= 0 or reads.failed or all_unknown:
        return answer(reads)
    if context.hurry.fired:
        return answer(reads)
    parked = ParkedFetch(broker.log, session, reads)
    return parked.wait(
        broker.clock, request.max_wait_ms, context.hurry, lambda: answer(reads.again(session.due()))
    )


def _answer(
    broker: Broker,
    context: RequestContext,
    request: FetchRequest,
    session: FetchSession,
    reads: PartitionReads,
) -> FetchResponse:
    """What is new of the session, or, where it begins or is not kept, all of it."""
    if request.session_epoch != FINAL:
        session.watch(broker.log)
    found = (*reads.known, *reads.unknown)
    told = [read for read in found if session.answered(*read)]
    if session.id == NO_SESSION:
        if request.session_epoch == FULL:
            slots = broker.config.max_incremental_fetch_session_cache_slots
            broker.fetch_sessions.keep(session, slots, broker.now_ms())
        if session.id == NO_SESSION:
            session.close()
    return FetchResponse(
        session_id=session.id,
        responses=_by_topic(told),
        node_endpoints=node_endpoints(broker, context, reads.leaders, _node_endpoint),
    )


def _by_topic(reads: Iterable[PartitionRead]) -> tuple[FetchableTopicResponse, ...]:
    """Partitions of one topic that follow each other share its entry."""
    by_topic = groupby(reads, key=lambda read: (read.cached.topic, read.cached.topic_id))
    return tuple(
        FetchableTopicResponse(
            topic=topic or "", topic_id=topic_id, partitions=tuple(read.data for read in group)
        )
        for (topic, topic_id), group in by_topic
    )


def _node_endpoint(node_id: int, host: str, port: int) -> NodeEndpoint:
    return NodeEndpoint(node_id=node_id, host=host, port=port)


def _refuse_all(session: FetchSession, error: ErrorCode) -> FetchResponse:
    """Where topics have names, their partitions have the error as well."""
    refused = [] if session.by_topic_id else session.due()
    reads = [PartitionRead(cached, refusal(cached, error, ())) for cached in refused]
    return FetchResponse(error_code=error, responses=_by_topic(reads))
