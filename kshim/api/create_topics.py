"""CreateTopics (19): create topics with partitions and configs, or only check whether that is possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial

from kshim.answering.admission import admission
from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster import NewTopic, Refusal, Topic
from kshim.cluster.broker_configs import BrokerConfigs
from kshim.cluster.described import created_topic
from kshim.storage.interfaces import StorageError
from kshim.turns.slices import Slices
from schemas.error_code import ErrorCode
from schemas.mapped import Mapped
from schemas.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

FIRST_STRICT_VERSION = 6
STORAGE_ERROR = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "The topic could not be stored.")
TWICE = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")


async def create_topics(
    broker: ClusterView, context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    """Create or refuse each topic independently.

    New topics are durable, and in Metadata, before the answer.
    """
    count = Counter(topic.name for topic in request.topics)
    wanted = [_new_topic(topic) for topic in request.topics if count[topic.name] == 1]
    twice = {name: TWICE for name, times in count.items() if times > 1}

    pause = Slices(broker.rounds, context.turn).spend
    admit = admission(context, FIRST_STRICT_VERSION)
    outcome: Mapping[str, Topic | Refusal]
    try:
        outcome = await broker.cluster.create_topics(
            wanted, validate_only=request.validate_only, pause=pause, admit=admit
        )
    except StorageError:
        outcome = dict.fromkeys((new.name for new in wanted), STORAGE_ERROR)
    configs = broker.cluster.broker_configs(broker.node_id)
    return CreateTopicsResponse(topics=Mapped(partial(_result, configs), tuple({**outcome, **twice}.items())))


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=tuple((item.partition_index, item.broker_ids) for item in topic.assignments),
        configs={config.name: config.value for config in topic.configs},
    )


def _result(broker: BrokerConfigs, item: tuple[str, Topic | Refusal]) -> CreatableTopicResult:
    name, made = item
    if isinstance(made, Refusal):
        return CreatableTopicResult(
            name=name, error_code=made.error_code, error_message=made.message, configs=()
        )
    return CreatableTopicResult(
        name=name,
        topic_id=made.topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=len(made.partitions),
        replication_factor=len(made.partitions[0].replicas),
        configs=tuple(_configs(made, broker)),
    )


def _configs(topic: Topic, broker: BrokerConfigs) -> Iterable[CreatableTopicConfigs]:
    for name, value, source in created_topic(topic.configs, broker):
        yield CreatableTopicConfigs(
            name=name, value=value, read_only=False, config_source=source, is_sensitive=False
        )
