"""Produce (0): append record batches. v13 names topics by id (KIP-516); v8 tells which records are refused
(KIP-467).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from twisted.internet.defer import Deferred

from kshim.api.later import gather, if_not_stored
from kshim.api.record_checks import fault_in_records
from kshim.cluster import Partition, Topic
from kshim.context import Broker, Refused, RequestContext
from kshim.storage.interfaces import Appended
from schemas.error_code import ErrorCode
from schemas.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from schemas.record_batch import CorruptRecordBatch, decode_header, validate

FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_BY_TOPIC_ID = 13
NO_REPLY = 0  # acks

Outcome = PartitionProduceResponse | Deferred[PartitionProduceResponse]


def produce(
    broker: Broker, context: RequestContext, request: ProduceRequest
) -> ProduceResponse | Deferred[ProduceResponse] | Deferred[None] | None:
    """The answer to all partitions comes when the last one is durable; with acks=0 there is none.

    A refusal with acks=0 closes the connection, as in Kafka: else the producer would never learn of it.
    """
    unauthorized = request.transactional_id is None and any(
        _is_transactional(data) for topic in request.topic_data for data in topic.partition_data
    )
    append: Callable[[TopicProduceData, PartitionProduceData], Outcome]
    append = _refuse_transaction if unauthorized else partial(_append, broker, context, request)
    outcomes = [append(topic, data) for topic in request.topic_data for data in topic.partition_data]
    if request.acks == NO_REPLY:
        nothing: Deferred[None] | None = gather(outcomes, partial(_no_reply, context))
        return nothing
    response: ProduceResponse | Deferred[ProduceResponse] = gather(outcomes, partial(_response, request))
    return response


def _response(request: ProduceRequest, outcomes: list[PartitionProduceResponse]) -> ProduceResponse:
    left = iter(outcomes)
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(next(left) for _ in topic.partition_data),
            )
            for topic in request.topic_data
            if topic.partition_data
        )
    )


def _no_reply(context: RequestContext, outcomes: list[PartitionProduceResponse]) -> None:
    refused = next((outcome for outcome in outcomes if outcome.error_code), None)
    if refused is not None:
        error = ErrorCode(refused.error_code).name
        raise Refused(
            f"{context.client_host}, client id {context.client_id!r}: Produce with acks=0: "
            f"partition {refused.index}: {error}"
        )


def _is_transactional(data: PartitionProduceData) -> bool:
    try:
        header = decode_header(data.records or b"")
    except CorruptRecordBatch:
        return False
    return header.is_transactional and header.magic == 2


def _refuse_transaction(_: TopicProduceData, data: PartitionProduceData) -> PartitionProduceResponse:
    return _refusal(data, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def _append(
    broker: Broker,
    context: RequestContext,
    request: ProduceRequest,
    topic_data: TopicProduceData,
    data: PartitionProduceData,
) -> Outcome:
    """Check and append what one partition was sent, in Kafka's order of checks."""
    by_id = context.api_version >= FIRST_VERSION_BY_TOPIC_ID
    cluster = broker.cluster
    topic = cluster.topic_by_id(topic_data.topic_id) if by_id else cluster.topics.get(topic_data.name)
    if topic is None:
        return _refusal(data, ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = topic.partition(data.index)
    if partition is None:
        return _refusal(data, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if request.transactional_id is not None and _is_transactional(data):
        return _refusal(data, ErrorCode.INVALID_PRODUCER_ID_MAPPING)  # no transactional id has a producer id
    if request.acks not in (-1, 0, 1):
        return _refusal(data, ErrorCode.INVALID_REQUIRED_ACKS)
    if topic.is_internal:
        return _refusal(data, ErrorCode.INVALID_TOPIC_EXCEPTION)
    try:
        return _append_batch(broker, context, topic, partition, data)
    except CorruptRecordBatch as error:
        return _refusal(data, error.error_code, message=str(error))


def _append_batch(
    broker: Broker, context: RequestContext, topic: Topic, partition: Partition, data: PartitionProduceData
) -> Outcome:
    config, now_ms = broker.cluster.log_config(topic), broker.now_ms()
    sent = memoryview(data.records or b"")
    allow_zstd = context.api_version >= FIRST_VERSION_WITH_ZSTD
    header = validate(sent, max_batch_bytes=config.max_message_bytes, allow_zstd=allow_zstd)
    batch = sent[: header.size]
    fault = fault_in_records(header, batch, config, now_ms, f"{topic.name}-{partition.index}")
    if fault is not None:
        log_start_offset = _log_start_offset(broker, partition)
        return _refusal(data, fault.error_code, log_start_offset, fault.message, fault.record_errors)

    def append() -> Deferred[Appended]:
        return broker.log.append(
            partition.partition_no,
            batch,
            leader_epoch=partition.leader_epoch,
            now_ms=now_ms,
            log_append_time=config.log_append_time,
        )

    if header.producer_id < 0:
        appended: Deferred[Appended] | ErrorCode = append()
    else:
        timestamp_ms = now_ms if config.log_append_time else header.max_timestamp
        appended = broker.producers.append(broker.log, partition.partition_no, header, timestamp_ms, append)
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
) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=data.index,
        error_code=error_code,
        base_offset=-1,
        log_start_offset=log_start_offset,
        record_errors=record_errors,
        error_message=message,
    )
