"""Metadata (3): brokers, topics, partitions and their leaders; creates missing topics where allowed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from uuid import UUID

from kshim.cluster import (
    INTERNAL_TOPICS,
    NO_LEADER,
    ZERO_UUID,
    Partition,
    Refusal,
    Topic,
    fault_in_name,
)
from kshim.requests import Broker, RequestContext
from kshim.requests.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from kshim.requests.later import Later, if_not_stored
from kshim.requests.leadership import node_endpoints
from schemas.error_code import ErrorCode
from schemas.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NOT_ASKED_FOR = -(1 << 31)
FIRST_VERSION_WITH_NULL_FOR_ALL = FIRST_VERSION_WITH_STOPPED_REPLICAS = 1
FIRST_VERSION_WITH_AUTO_CREATION_FLAG = 4
FIRST_VERSION_BY_TOPIC_ID = 12


def metadata(broker: Broker, context: RequestContext, request: MetadataRequest) -> Later[MetadataResponse]:
    """The topics asked for: null is all (in v0, none named is all); by topic id alone if the request has any
    id. Below v12 an id is an error, although v10 has the field.

    A topic that the request creates is in the answer, with its leader. Kafka answers
    UNKNOWN_TOPIC_OR_PARTITION first, and the client asks again.
    """
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED_FOR
    version, topics = context.api_version, request.topics
    if topics is None or (not topics and version < FIRST_VERSION_WITH_NULL_FOR_ALL):
        described = [
            _existing(broker, version, topic, operations) for topic in broker.cluster.topics.values()
        ]
        return _response(broker, context, request, described)
    ids = dict.fromkeys(topic.topic_id for topic in topics if topic.topic_id != ZERO_UUID)
    names = list(dict.fromkeys(topic.name for topic in topics if topic.name is not None))
    nameless = any(topic.name is None for topic in topics)
    if version < FIRST_VERSION_BY_TOPIC_ID and (ids or nameless):
        return _refused(topics, ErrorCode.INVALID_REQUEST)
    if ids:
        return _response(broker, context, request, _by_id(broker, version, ids, operations))
    if nameless:
        return _refused(topics, ErrorCode.UNKNOWN_SERVER_ERROR)
    missing = _to_be_made(broker, version, request, names)
    if not missing:
        return _response(broker, context, request, _by_name(broker, version, names, {}, operations))

    def made(outcome: Mapping[str, Topic | Refusal]) -> MetadataResponse:
        return _response(broker, context, request, _by_name(broker, version, names, outcome, operations))

    def not_made() -> MetadataResponse:
        failed = dict.fromkeys(missing, Refusal(ErrorCode.KAFKA_STORAGE_ERROR, None))
        return _response(broker, context, request, _by_name(broker, version, names, failed, operations))

    return broker.cluster.auto_create_topics(missing).addCallbacks(made, if_not_stored(not_made))


def _to_be_made(broker: Broker, version: int, request: MetadataRequest, names: list[str]) -> list[str]:
    """The missing topics that this request creates."""
    asked = version < FIRST_VERSION_WITH_AUTO_CREATION_FLAG or request.allow_auto_topic_creation
    if not (asked and broker.config.auto_create_topics_enable):
        return []
    topics = broker.cluster.topics
    return [name for name in names if name not in topics and fault_in_name(name) is None]


def _by_name(
    broker: Broker,
    version: int,
    names: Iterable[str],
    outcome: Mapping[str, Topic | Refusal],
    operations: int,
) -> list[MetadataResponseTopic]:
    described = []
    for name in names:
        topic = broker.cluster.topics.get(name)
        if topic is not None:
            described.append(_existing(broker, version, topic, operations))
            continue
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        refusal = outcome.get(name)
        if fault_in_name(name):
            error = ErrorCode.INVALID_TOPIC_EXCEPTION
        elif isinstance(refusal, Refusal) and refusal.error_code is ErrorCode.KAFKA_STORAGE_ERROR:
            error = refusal.error_code
        described.append(_absent(error, name, operations))
    return described


def _by_id(broker: Broker, version: int, ids: Iterable[UUID], operations: int) -> list[MetadataResponseTopic]:
    described = []
    for topic_id in ids:
        found = broker.cluster.topic_by_id(topic_id)
        if found is not None:
            described.append(_existing(broker, version, found, operations))
        else:
            described.append(_absent(ErrorCode.UNKNOWN_TOPIC_ID, None, NOT_ASKED_FOR, topic_id))
    return described


def _existing(broker: Broker, version: int, topic: Topic, operations: int) -> MetadataResponseTopic:
    running = broker.cluster.running
    only_running = version < FIRST_VERSION_WITH_STOPPED_REPLICAS
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(_partition(partition, running, only_running) for partition in topic.partitions),
        topic_authorized_operations=operations,
    )


def _partition(
    partition: Partition, running: Collection[int], only_running: bool
) -> MetadataResponsePartition:
    """only_running: leave out stopped replicas; to clients of v0 a replica outside the broker list is an
    error.
    """
    replicas, error = partition.replicas, ErrorCode.NONE
    if only_running:
        replicas = tuple(node for node in replicas if node in running)
    if partition.leader == NO_LEADER:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    elif len(replicas) < len(partition.replicas):
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=partition.index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=partition.isr,
        offline_replicas=tuple(node for node in partition.replicas if node not in running),
    )


def _absent(
    error: ErrorCode, name: str | None, operations: int, topic_id: UUID = ZERO_UUID
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error,
        name=name,
        topic_id=topic_id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=(),
        topic_authorized_operations=operations,
    )


def _refused(topics: Iterable[MetadataRequestTopic], error: ErrorCode) -> MetadataResponse:
    """The error for each topic, and no brokers; v13 has a place for the error beside the topics."""
    return MetadataResponse(
        error_code=error,
        topics=tuple(
            replace(_absent(error, topic.name or "", NOT_ASKED_FOR, topic.topic_id), is_internal=False)
            for topic in topics
        ),
    )


def _response(
    broker: Broker, context: RequestContext, request: MetadataRequest, topics: Iterable[MetadataResponseTopic]
) -> MetadataResponse:
    cluster = broker.cluster
    asked = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=node_endpoints(
            broker,
            context,
            cluster.running,
            lambda node_id, host, port: MetadataResponseBroker(node_id=node_id, host=host, port=port),
        ),
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        topics=tuple(topics),
        cluster_authorized_operations=CLUSTER_OPERATIONS if asked else NOT_ASKED_FOR,
    )
