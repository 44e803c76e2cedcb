"""Metadata (3): brokers, topics, partitions and leaders. It creates missing topics if that is allowed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from kshim.answering import Broker
from kshim.answering.admission import admission
from kshim.answering.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from kshim.answering.node_endpoints import node_endpoints
from kshim.answering.warn import warn_if_lost
from kshim.callers import RequestContext
from kshim.cluster import (
    INTERNAL_TOPICS,
    NO_LEADER,
    ZERO_UUID,
    Partition,
    Refusal,
    Topic,
    fault_in_name,
)
from kshim.storage.interfaces import StorageError
from kshim.turns.slices import in_pieces, in_slices
from schemas.error_code import ErrorCode
from schemas.mapped import Mapped
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
TOPIC_US = 5
"""The time that a topic takes. Partitions take time only when they are written."""
TOPICS_MADE_AT_ONCE = 100
MANY_PARTITIONS = 50
"""A topic with so many partitions has many clients, too, and each of them asks for all partitions."""


async def metadata(broker: Broker, context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """Describe the requested topics. Null means all topics; in v0, an empty request does.

    If the request has any topic id, names are ignored. Below v12 an id is an error, although v10 has the
    field. A topic that the request creates is in the answer, with its leader. (Kafka answers
    UNKNOWN_TOPIC_OR_PARTITION first, and the client asks again.)
    """
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED_FOR
    version, topics = context.api_version, request.topics
    if topics is None or (not topics and version < FIRST_VERSION_WITH_NULL_FOR_ALL):
        known = list(broker.cluster.topics.values())
        existing = partial(_existing, broker, version, operations)
        described = await in_slices(broker.rounds, context.turn, known, existing, lambda _: TOPIC_US)
        return _response(broker, context, request, described)
    ids = dict.fromkeys(topic.topic_id for topic in topics if topic.topic_id != ZERO_UUID)
    names = list(dict.fromkeys(topic.name for topic in topics if topic.name is not None))
    nameless = any(topic.name is None for topic in topics)
    if version < FIRST_VERSION_BY_TOPIC_ID and (ids or nameless):
        return _refused(topics, ErrorCode.INVALID_REQUEST)
    if ids:
        by_id = partial(_by_id, broker, version, operations)
        described = await in_slices(broker.rounds, context.turn, list(ids), by_id, lambda _: TOPIC_US)
        return _response(broker, context, request, described)
    if nameless:
        return _refused(topics, ErrorCode.UNKNOWN_SERVER_ERROR)
    missing = _to_be_made(broker, version, request, names)
    made = await _made(broker, context, missing) if missing else {}
    by_name = partial(_by_name, broker, version, operations, made)
    described = await in_slices(broker.rounds, context.turn, names, by_name, lambda _: TOPIC_US)
    return _response(broker, context, request, described)


async def _made(
    broker: Broker, context: RequestContext, missing: Sequence[str]
) -> Mapping[str, Topic | Refusal]:
    """Create topics. Return each topic, or why it was refused, by name."""

    async def make(some: Sequence[str]) -> Iterable[tuple[str, Topic | Refusal]]:
        made = await broker.cluster.auto_create_topics(some, admission(context, waits=False))
        return made.items()

    try:
        return dict(await in_pieces(broker.rounds, context.turn, missing, make, TOPICS_MADE_AT_ONCE))
    except StorageError:
        return dict.fromkeys(missing, Refusal(ErrorCode.KAFKA_STORAGE_ERROR, None))


def _to_be_made(broker: Broker, version: int, request: MetadataRequest, names: list[str]) -> list[str]:
    """The missing topics that this request creates."""
    asked = version < FIRST_VERSION_WITH_AUTO_CREATION_FLAG or request.allow_auto_topic_creation
    if not (asked and broker.config.auto_create_topics_enable):
        return []
    topics = broker.cluster.topics
    return [name for name in names if name not in topics and fault_in_name(name) is None]


def _by_name(
    broker: Broker, version: int, operations: int, outcome: Mapping[str, Topic | Refusal], name: str
) -> MetadataResponseTopic:
    topic = broker.cluster.topics.get(name)
    if topic is not None:
        return _existing(broker, version, operations, topic)
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    refusal = outcome.get(name)
    if fault_in_name(name):
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    elif isinstance(refusal, Refusal) and refusal.error_code is ErrorCode.KAFKA_STORAGE_ERROR:
        error = refusal.error_code
    return _absent(error, name, operations)


def _by_id(broker: Broker, version: int, operations: int, topic_id: UUID) -> MetadataResponseTopic:
    found = broker.cluster.topic_by_id(topic_id)
    if found is None:
        return _absent(ErrorCode.UNKNOWN_TOPIC_ID, None, NOT_ASKED_FOR, topic_id)
    return _existing(broker, version, operations, found)


def _existing(broker: Broker, version: int, operations: int, topic: Topic) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=_partitions(broker, version, topic),
        topic_authorized_operations=operations,
    )


def _partitions(broker: Broker, version: int, topic: Topic) -> Mapped[MetadataResponsePartition]:
    running = broker.cluster.running
    only_running = version < FIRST_VERSION_WITH_STOPPED_REPLICAS

    def describe(partition: Partition) -> MetadataResponsePartition:
        return _partition(partition, running, only_running)

    if len(topic.partitions) < MANY_PARTITIONS:
        return Mapped(describe, topic.partitions)
    return broker.written.array((topic.name, version), (topic, running), describe, topic.partitions)


def _partition(
    partition: Partition, running: Collection[int], only_running: bool
) -> MetadataResponsePartition:
    """Describe a partition. only_running: leave out stopped replicas, as clients of v0 treat a replica that
    is missing in the list of brokers as an error.
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
        offline_replicas=tuple([node for node in partition.replicas if node not in running]),
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
    """Refuse the whole request: the error for each topic, and from v13 on at the top, too; no brokers."""
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
    topics = tuple(topics)
    _watch(broker, context, request, topics)
    context.stays_the_same = not any(topic.error_code for topic in topics)
    return MetadataResponse(
        brokers=node_endpoints(
            broker,
            context,
            cluster.running,
            lambda node_id, host, port: MetadataResponseBroker(node_id=node_id, host=host, port=port),
        ),
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        topics=topics,
        cluster_authorized_operations=CLUSTER_OPERATIONS if asked else NOT_ASKED_FOR,
    )


def _watch(
    broker: Broker,
    context: RequestContext,
    request: MetadataRequest,
    topics: Sequence[MetadataResponseTopic],
) -> None:
    """Watch whether the client then connects to the brokers in the answer."""
    if request.topics is None or len(topics) > len(request.topics):  # all topics
        if context.client is not None:
            broker.arrivals.came(context.client)
    elif not any(topic.error_code for topic in topics):
        warn_if_lost(broker, context, names_any=bool(topics))
