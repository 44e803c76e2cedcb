"""Produce (0): append record batches.

v8: the answer names the records that are refused (KIP-467); v13: topics by id (KIP-516).
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from kshim.answering import Broker
from kshim.answering.node_endpoints import node_endpoints
from kshim.callers import Refused, RequestContext
from kshim.producing.entries import NO_REPLY, Outcome, append_entries
from kshim.producing.targets import Entry, NotAppended
from kshim.storage.interfaces import Appended
from schemas.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

NOT_SAID = LeaderIdAndEpoch()


async def produce(broker: Broker, context: RequestContext, request: ProduceRequest) -> ProduceResponse | None:
    """Append all batches, and answer when the last one is durable; with acks=0 do not answer.

    With acks=0 a refusal closes the connection, as in Kafka, because the producer would never learn of it
    otherwise.
    """
    entries = [(topic, data) for topic in request.topic_data for data in topic.partition_data]
    outcomes = await append_entries(broker, context, request, entries)
    if request.acks == NO_REPLY:
        _check_all(context, entries, outcomes)
        return None
    return _response(broker, context, request, outcomes)


def _check_all(context: RequestContext, entries: Sequence[Entry], outcomes: Sequence[Outcome]) -> None:
    """Raise Refused if an entry was not appended, because there is no answer to say so."""
    for (_, data), outcome in zip(entries, outcomes, strict=True):
        if isinstance(outcome, NotAppended):
            raise Refused(
                f"{context.client_host}, client id {context.client_id!r}: Produce with acks=0: "
                f"partition {data.index}: {outcome.error_code.name}"
            )


def _response(
    broker: Broker, context: RequestContext, request: ProduceRequest, outcomes: Sequence[Outcome]
) -> ProduceResponse:
    left = iter(outcomes)
    answers: dict[str | UUID, tuple[TopicProduceData, list[PartitionProduceResponse]]] = {}
    for topic in request.topic_data:
        if topic.partition_data:  # a topic that is named twice gets one entry in the answer
            _, answered = answers.setdefault(topic.name or topic.topic_id, (topic, []))
            answered.extend(map(_partition_response, topic.partition_data, left))
    refused = [each for each in outcomes if isinstance(each, NotAppended)]
    return ProduceResponse(
        node_endpoints=_leaders(broker, context, refused) if refused else (),
        responses=tuple(
            TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=tuple(answered)
            )
            for topic, answered in answers.values()
        ),
    )


def _partition_response(data: PartitionProduceData, outcome: Outcome) -> PartitionProduceResponse:
    if isinstance(outcome, NotAppended):
        return _refusal(data, outcome)
    assert isinstance(outcome, Appended)
    return PartitionProduceResponse(
        index=data.index,
        base_offset=outcome.base_offset,
        log_append_time_ms=outcome.log_append_time_ms,
        log_start_offset=outcome.log_start_offset,
    )


def _refusal(data: PartitionProduceData, refused: NotAppended) -> PartitionProduceResponse:
    leader = refused.led_elsewhere
    return PartitionProduceResponse(
        index=data.index,
        error_code=refused.error_code,
        base_offset=-1,
        log_start_offset=refused.log_start_offset,
        record_errors=refused.record_errors,
        error_message=refused.message,
        current_leader=NOT_SAID
        if leader is None
        else LeaderIdAndEpoch(leader_id=leader.leader, leader_epoch=leader.leader_epoch),
    )


def _leaders(
    broker: Broker, context: RequestContext, refused: Sequence[NotAppended]
) -> tuple[NodeEndpoint, ...]:
    """Return the addresses of the brokers that lead the refused partitions."""
    leaders = [each.led_elsewhere.leader for each in refused if each.led_elsewhere is not None]
    return node_endpoints(broker, context, leaders, _node_endpoint)


def _node_endpoint(node_id: int, host: str, port: int) -> NodeEndpoint:
    return NodeEndpoint(node_id=node_id, host=host, port=port)
