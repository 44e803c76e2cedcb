"""Produce (0): append record batches.

v8: the answer names the records that are refused (KIP-467); v13: topics by id (KIP-516).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

from twisted.internet.defer import Deferred

from kshim.answering import Broker
from kshim.answering.node_endpoints import node_endpoints
from kshim.callers import Refused, RequestContext
from kshim.cluster import Partition, Topic
from kshim.cluster.leadership import fault_in_leadership
from kshim.producing.preparation import Prepared, Ready, prepare
from kshim.producing.record_checks import RecordFault
from kshim.producing.rules import Verification
from kshim.producing.transaction_checks import NotAllowed, TransactionalBatch, Verdicts, verify
from kshim.storage.interfaces import Appended
from kshim.turns.later import Later, gather, if_not_stored, then
from kshim.turns.slices import in_pieces, in_slices
from schemas.error_code import ErrorCode
from schemas.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from schemas.records.batch import (
    HEADER_BYTES,
    CorruptRecordBatch,
    decode_header,
    is_transactional,
    sole_batch,
)

FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_BY_TOPIC_ID = 13
NO_REPLY, ALL_IN_SYNC = 0, -1  # acks
ENTRIES_AT_ONCE, FIND_US = 300, 10
NOT_SAID = LeaderIdAndEpoch()
NOT_ASKED: Verdicts = {}

Entry = tuple[TopicProduceData, PartitionProduceData]
Answered = Later[PartitionProduceResponse]
"""The answer for one partition's batch: a refusal at once, or the position once the batch is durable."""


class _Target(NamedTuple):
    """One partition's batch, and the partition to append it to."""

    topic: Topic
    partition: Partition
    data: PartitionProduceData
    batch: memoryview


_Found = _Target | PartitionProduceResponse
"""An entry's target, or its refusal."""


def produce(
    broker: Broker, context: RequestContext, request: ProduceRequest
) -> Later[ProduceResponse | None]:
    """Append all batches, and answer when the last one is durable; with acks=0 do not answer.

    With acks=0 a refusal closes the connection, as in Kafka, because the producer would never learn of it
    otherwise.
    """
    entries = [(topic, data) for topic in request.topic_data for data in topic.partition_data]
    answer = partial(_answer, broker, context, request)
    try:
        in_transaction = any(is_transactional(data.records or b"") for _, data in entries)
    except CorruptRecordBatch as error:
        return answer(_refuse_all(entries, error.error_code, str(error)))
    if in_transaction and request.transactional_id is None:
        return answer(_refuse_all(entries, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    if in_transaction or len(entries) > ENTRIES_AT_ONCE:
        later = in_slices(
            broker.rounds, context.turn, entries, partial(_find, broker, context), lambda _: FIND_US
        )
        return then(later, partial(_produce_found, broker, context, request, in_transaction, entries, answer))
    found = [_find(broker, context, entry) for entry in entries]
    if _fails_as_a_whole(found):
        return answer(_refuse_all(entries, ErrorCode.UNKNOWN_SERVER_ERROR))
    return then(_store_some(broker, context, request, found, NOT_ASKED), answer)


def _fails_as_a_whole(found: Iterable[_Found]) -> bool:
    """True if Kafka fails at one of the entries, and therefore at the whole request."""
    refused = [each.error_code for each in found if not isinstance(each, _Target)]
    return ErrorCode.UNKNOWN_SERVER_ERROR in refused


def _produce_found(
    broker: Broker,
    context: RequestContext,
    request: ProduceRequest,
    in_transaction: bool,
    entries: Sequence[Entry],
    answer: Callable[[Sequence[Answered]], Later[ProduceResponse | None]],
    found: Sequence[_Found],
) -> Later[ProduceResponse | None]:
    """Answer a transactional request, or one with many entries, once its targets are found."""
    if _fails_as_a_whole(found):
        return answer(_refuse_all(entries, ErrorCode.UNKNOWN_SERVER_ERROR))
    if not in_transaction:
        return then(_store(broker, context, request, found, NOT_ASKED), answer)
    asked = list(_asked(found))
    producers = {(batch.header.producer_id, batch.header.producer_epoch) for batch in asked}
    if len(producers) > 1:
        return answer(_refuse_all(entries, ErrorCode.INVALID_PRODUCER_ID_MAPPING))
    store = partial(_store, broker, context, request, found)
    if not asked:
        return then(store(NOT_ASKED), answer)
    ((producer_id, _),) = producers
    assert request.transactional_id is not None
    ask = partial(verify, broker, context, request.transactional_id, asked)
    return then(broker.producers.in_turn(producer_id, lambda: then(ask(), store)), answer)


def _store(
    broker: Broker,
    context: RequestContext,
    request: ProduceRequest,
    found: Sequence[_Found],
    verdicts: Verdicts,
) -> Later[Sequence[Answered]]:
    """Append the batch of each target. The answers come later; if there are many targets, all together."""
    if len(found) <= ENTRIES_AT_ONCE:
        return _store_some(broker, context, request, found, verdicts)

    def store(some: Sequence[_Found]) -> Later[Iterable[PartitionProduceResponse]]:
        return then(_store_some(broker, context, request, some, verdicts), _all_answered)

    return then(in_pieces(broker.rounds, context.turn, found, store, ENTRIES_AT_ONCE), _as_they_are)


def _store_some(
    broker: Broker,
    context: RequestContext,
    request: ProduceRequest,
    found: Sequence[_Found],
    verdicts: Verdicts,
) -> Later[Sequence[Answered]]:
    prepared = _prepare_all(broker, context, found)
    if isinstance(prepared, list):
        return _append_all(broker, request, found, verdicts, prepared)
    return prepared.addCallback(partial(_append_all, broker, request, found, verdicts))


def _all_answered(answers: Sequence[Answered]) -> Later[Iterable[PartitionProduceResponse]]:
    return gather(answers, list)


def _as_they_are(answers: Iterable[PartitionProduceResponse]) -> Sequence[Answered]:
    return list(answers)


def _prepare_all(broker: Broker, context: RequestContext, found: Sequence[_Found]) -> Later[list[Prepared]]:
    """Prepare each target's batch. In place of an entry without a target there is None."""
    batches = len(found)
    prepared: list[Any] = [
        prepare(broker, context, each.topic, each.partition, each.batch, batches)
        if isinstance(each, _Target)
        else None
        for each in found
    ]
    return gather(prepared, list) if context.turn.is_alone else prepared


def _asked(found: Iterable[_Found]) -> Iterator[TransactionalBatch]:
    """The transactional batches. The coordinator may have to be asked about them."""
    for target in found:
        if not isinstance(target, _Target) or len(target.batch) < HEADER_BYTES:
            continue
        topic, partition, data, batch = target
        header = decode_header(batch)
        if header.is_transactional and header.producer_id >= 0:
            yield TransactionalBatch(topic.name, data.index, partition.partition_no, header)


def _answer(
    broker: Broker, context: RequestContext, request: ProduceRequest, outcomes: Sequence[Answered]
) -> Later[ProduceResponse | None]:
    if request.acks == NO_REPLY:
        return gather(outcomes, partial(_no_reply, context))
    return gather(outcomes, partial(_response, broker, context, request))


def _response(
    broker: Broker,
    context: RequestContext,
    request: ProduceRequest,
    outcomes: list[PartitionProduceResponse],
) -> ProduceResponse | None:
    left = iter(outcomes)
    answers: dict[str | UUID, tuple[TopicProduceData, list[PartitionProduceResponse]]] = {}
    for topic in request.topic_data:
        if topic.partition_data:  # a topic that is named twice gets one entry in the answer
            _, answered = answers.setdefault(topic.name or topic.topic_id, (topic, []))
            answered.extend(islice(left, len(topic.partition_data)))
    leaders = [outcome.current_leader.leader_id for outcome in outcomes if outcome.error_code]
    return ProduceResponse(
        node_endpoints=node_endpoints(broker, context, leaders, _node_endpoint) if leaders else (),
        responses=tuple(
            TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=tuple(answered)
            )
            for topic, answered in answers.values()
        ),
    )


def _node_endpoint(node_id: int, host: str, port: int) -> NodeEndpoint:
    return NodeEndpoint(node_id=node_id, host=host, port=port)


def _no_reply(context: RequestContext, outcomes: list[PartitionProduceResponse]) -> ProduceResponse | None:
    refused = next((outcome for outcome in outcomes if outcome.error_code), None)
    if refused is not None:
        error = ErrorCode(refused.error_code).name
        raise Refused(
            f"{context.client_host}, client id {context.client_id!r}: Produce with acks=0: "
            f"partition {refused.index}: {error}"
        )
    return None


def _refuse_all(entries: Iterable[Entry], error_code: ErrorCode, message: str = "") -> list[Answered]:
    return [_refusal(data, error_code, message=message or None) for _, data in entries]


def _find(broker: Broker, context: RequestContext, entry: Entry) -> _Found:
    """Return the partition and batch of an entry, or its refusal. Kafka makes these checks first."""
    topic_data, data = entry
    by_id = context.api_version >= FIRST_VERSION_BY_TOPIC_ID
    cluster = broker.cluster
    topic = cluster.topic_by_id(topic_data.topic_id) if by_id else cluster.topics.get(topic_data.name)
    if topic is None:
        return _refusal(data, ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = topic.partition(data.index)
    if partition is None:
        return _refusal(data, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        batch = sole_batch(data.records or b"", allow_zstd=context.api_version >= FIRST_VERSION_WITH_ZSTD)
    except CorruptRecordBatch as error:
        return _refusal(data, error.error_code, message=str(error))
    return _Target(topic, partition, data, batch)


def _append_all(
    broker: Broker,
    request: ProduceRequest,
    found: Iterable[_Found],
    verdicts: Verdicts,
    prepared: Iterable[Prepared],
) -> list[Answered]:
    return [
        _append(broker, request, target, ready, verdicts) if isinstance(target, _Target) else target
        for target, ready in zip(found, prepared, strict=True)
    ]


def _append(
    broker: Broker,
    request: ProduceRequest,
    target: _Target,
    ready: Prepared,
    verdicts: Verdicts,
) -> Answered:
    """Append one partition's batch. The checks before that are in Kafka's order."""
    topic, partition, data, _ = target
    verdict = verdicts.get((topic.name, data.index)) if verdicts else None
    if isinstance(verdict, NotAllowed):
        return _refusal(data, verdict.error_code, message=verdict.message)
    if request.acks not in (-1, 0, 1):
        return _refusal(data, ErrorCode.INVALID_REQUIRED_ACKS)
    if topic.is_internal:
        return _refusal(data, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if (fault := fault_in_leadership(broker.node_id, partition)) is not ErrorCode.NONE:
        leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
        return _refusal(data, fault, current_leader=leader)
    all_in_sync = len(partition.isr) == len(partition.replicas)
    if request.acks == ALL_IN_SYNC and not all_in_sync and not _enough_in_sync(broker, target):
        return _refusal(data, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert ready is not None, "every target is prepared"
    if isinstance(ready, RecordFault):
        log_start_offset = _log_start_offset(broker, partition) if ready.is_whole else -1
        return _refusal(data, ready.error_code, log_start_offset, ready.message, ready.record_errors)
    return _append_batch(broker, target, ready, verdict)


def _enough_in_sync(broker: Broker, target: _Target) -> bool:
    """True if there are enough in-sync replicas: min.insync.replicas, or all if there are fewer (KIP-966)."""
    topic, partition = target.topic, target.partition
    return len(partition.isr) >= broker.cluster.log_config(topic, broker.node_id).min_insync_replicas


def _append_batch(
    broker: Broker, target: _Target, ready: Ready, verification: Verification | None
) -> Answered:
    _, partition, data, _ = target
    header, batch, now_ms, log_append_time = ready

    def append() -> Deferred[Appended]:
        return broker.log.append(
            partition.partition_no,
            batch,
            leader_epoch=partition.leader_epoch,
            now_ms=now_ms,
            log_append_time=log_append_time,
        )

    if header.producer_id < 0:
        appended: Deferred[Appended] | ErrorCode = append()
    else:
        appended = broker.producers.append(
            partition.partition_no, header, append, now_ms=now_ms, verification=verification
        )
    if isinstance(appended, ErrorCode):
        return _refusal(data, appended, _log_start_offset(broker, partition))
    not_stored = if_not_stored(partial(_refusal, data, ErrorCode.KAFKA_STORAGE_ERROR))
    return appended.addCallbacks(partial(_success, data), not_stored)


def _success(data: PartitionProduceData, appended: Appended) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=data.index,
        error_code=ErrorCode.NONE,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )


def _log_start_offset(broker: Broker, partition: Partition) -> int:
    return broker.log.offsets(partition.partition_no).log_start_offset


def _refusal(
    data: PartitionProduceData,
    error_code: ErrorCode,
    log_start_offset: int = -1,
    message: str | None = None,
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = (),
    current_leader: LeaderIdAndEpoch = NOT_SAID,
) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=data.index,
        error_code=error_code,
        base_offset=-1,
        log_start_offset=log_start_offset,
        record_errors=record_errors,
        error_message=message,
        current_leader=current_leader,
    )
