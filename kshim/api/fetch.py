"""Fetch (1): record batches from an offset on, at once or when there are enough.

v7: fetch sessions (KIP-227); v11: reads from any replica (KIP-392); v13: topics by id (KIP-516); v16: the
current leader (KIP-951).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kshim.answering import Broker
from kshim.answering.node_endpoints import node_endpoints
from kshim.callers import RequestContext
from kshim.fetching.parked import ParkedFetch
from kshim.fetching.reads import (
    FIRST_VERSION_BY_TOPIC_ID,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    PartitionRead,
    PartitionReads,
    refusal,
)
from kshim.fetching.sessions import MAX_INT32, NO_SESSION, CachedTopic, FetchSession
from kshim.storage.interfaces import Log
from kshim.turns.promise import Answer, run
from kshim.turns.slices import Slices, each_piece
from schemas.error_code import ErrorCode
from schemas.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from schemas.registry import body_size

PARTITIONS_AT_ONCE = 1000
SIZE_BYTES = 4


def fetch(broker: Broker, context: RequestContext, request: FetchRequest) -> Answer[FetchResponse]:
    """Answer at once if there are min_bytes, an error, or no time to wait; else park until one of these
    holds.

    `context.turn` also ends the wait, as it would delay the connection's next requests.
    """
    by_topic_id = context.api_version >= FIRST_VERSION_BY_TOPIC_ID
    session = broker.fetch_sessions.open(request, by_topic_id, broker.now_ms())
    if isinstance(session, ErrorCode):
        return FetchResponse(error_code=session)
    epoch = session.epoch
    most_bytes = MAX_INT32 if context.account is None else context.account.most_fetched_bytes
    reads = PartitionReads(broker, context.api_version, request, context.may_see, most_bytes)
    is_legal = request.isolation_level in (READ_UNCOMMITTED, READ_COMMITTED)
    if not is_legal and reads.knows_any(session.partitions()):
        return _failed(request, by_topic_id)

    def answer(reads: PartitionReads) -> FetchResponse:
        reads.in_order()
        if session.epoch != epoch:  # another request of the session came while this one was waiting
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.id)
        if len(reads.unknown) > 1 and _lacks_an_id(reads):
            return _failed(request, by_topic_id)
        if context.account is not None:
            context.account.fetched(_size(context, session, reads))
            if context.account.throttle_ms:
                return _throttled(session)
        return _answer(broker, context, session, reads)

    due = session.due()
    if len(due) > PARTITIONS_AT_ONCE:
        return run(_fetch_wide(broker, context, request, session, reads, answer))
    if _is_answered_at_once(context, request, session, reads.read(due)):
        return answer(reads)
    parked: ParkedFetch[FetchResponse] = ParkedFetch(broker.log, session, reads)
    return parked.wait(
        broker.clock,
        request.max_wait_ms,
        context.turn,
        lambda: answer(reads.anew().again(session.due())),
    )


def _is_answered_at_once(
    context: RequestContext, request: FetchRequest, session: FetchSession, reads: PartitionReads
) -> bool:
    all_unknown = len(reads.unknown) == len(session)
    if request.max_wait_ms <= 0 or reads.missing_bytes <= 0 or reads.failed or all_unknown:
        return True
    return context.turn.fired


async def _fetch_wide(
    broker: Broker,
    context: RequestContext,
    request: FetchRequest,
    session: FetchSession,
    reads: PartitionReads,
    answer: Callable[[PartitionReads], FetchResponse],
) -> FetchResponse:
    """Read many partitions, in slices.

    If the request must wait, read them again after the wait, also in slices.
    """
    context.turn.is_alone = True
    slices = Slices(broker.rounds, context.turn)
    await each_piece(slices, session.due(), lambda some: [reads.read(some)], PARTITIONS_AT_ONCE)
    if _is_answered_at_once(context, request, session, reads):
        return answer(reads)
    if _has_moved(broker.log, session):
        anew = reads.anew()
    else:
        parked: ParkedFetch[PartitionReads] = ParkedFetch(broker.log, session, reads)
        anew = await parked.wait(broker.clock, request.max_wait_ms, context.turn, reads.anew)
    await each_piece(slices, session.due(), lambda some: [anew.again(some)], PARTITIONS_AT_ONCE)
    return answer(anew)


def _has_moved(log: Log, session: FetchSession) -> bool:
    """True if any partition has new records since it was read."""
    return any(
        cached.partition_no is not None and log.offsets(cached.partition_no).high_watermark > cached.end_seen
        for cached in session.partitions()
    )


def _answer(
    broker: Broker, context: RequestContext, session: FetchSession, reads: PartitionReads
) -> FetchResponse:
    """Answer with the news of the session.

    If the session begins now, or is not kept, answer with all partitions.
    """
    shown = reads.known + reads.unknown
    if session.goes_on:
        session.watch(broker.log)
        shown = [read for read in shown if session.answered(*read)]
        if session.id == NO_SESSION:
            slots = broker.config.max_incremental_fetch_session_cache_slots
            broker.fetch_sessions.keep(session, slots, broker.now_ms())
    if session.id == NO_SESSION:
        session.close()
    leaders = reads.leaders
    return FetchResponse(
        session_id=session.id,
        responses=_by_topic(shown),
        node_endpoints=node_endpoints(broker, context, leaders, _node_endpoint) if leaders else (),
    )


def _size(context: RequestContext, session: FetchSession, reads: PartitionReads) -> int:
    """The size of the answer as Kafka counts it: the body and its length field.

    Of many partitions only the first ones are encoded to measure them; the others count as equally large,
    plus their records.
    """
    is_full = session.id == NO_SESSION
    shown = [read for read in reads.known + reads.unknown if is_full or read.cached.is_news(read.data)]
    first, rest = shown[:PARTITIONS_AT_ONCE], shown[PARTITIONS_AT_ONCE:]
    written = body_size(context.api_version, FetchResponse(responses=_by_topic(first))).bytes
    if rest:
        written += len(rest) * (written - _records_bytes(first)) // len(first) + _records_bytes(rest)
    return SIZE_BYTES + written


def _records_bytes(reads: Iterable[PartitionRead]) -> int:
    return sum(len(read.data.records or b"") for read in reads)


def _throttled(session: FetchSession) -> FetchResponse:
    """The answer to a client that must wait because of a quota.

    It has no records, and the client asks again.
    """
    if session.id == NO_SESSION:
        session.close()
    return FetchResponse(session_id=session.id)


def _by_topic(reads: Iterable[PartitionRead]) -> tuple[FetchableTopicResponse, ...]:
    """Group the answers by topic: consecutive partitions of one topic share an entry."""
    by_topic: list[tuple[CachedTopic, list[PartitionData]]] = []
    for cached, data, _ in reads:
        topic = cached.topic
        if not by_topic or not topic.is_same(by_topic[-1][0]):
            by_topic.append((topic, []))
        by_topic[-1][1].append(data)
    return tuple(
        FetchableTopicResponse(topic=topic.name or "", topic_id=topic.topic_id, partitions=tuple(partitions))
        for topic, partitions in by_topic
    )


def _node_endpoint(node_id: int, host: str, port: int) -> NodeEndpoint:
    return NodeEndpoint(node_id=node_id, host=host, port=port)


def _lacks_an_id(reads: PartitionReads) -> bool:
    """True if a topic without an id comes before the last unknown topic. Apache Kafka cannot write such an
    answer.
    """
    return any(
        read.cached.topic.name is None and not read.cached.topic.topic_id.int for read in reads.unknown[:-1]
    )


def _failed(request: FetchRequest, by_topic_id: bool) -> FetchResponse:
    """The answer to a request at which Apache Kafka fails: the error, and if topics have names, the error on
    each entry, too.
    """
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    return FetchResponse(
        error_code=error,
        session_id=request.session_id,
        responses=tuple(
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=tuple(refusal(wanted.partition, error, ()) for wanted in topic.partitions),
            )
            for topic in request.topics
            if not by_topic_id
        ),
    )
