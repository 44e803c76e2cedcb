"""The topic of the groups' journal at the upstream: created at the first start, checked at every start."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from twisted.internet.defer import Deferred

from kshim.configs.upstream_groups import AS_MANY_AS_CAN_BE
from kshim.storage.clock import Clock, after
from kshim.storage.interfaces import StorageError
from kshim.upstream.link import LinkError
from kshim.upstream.shards.batch_limit import DEFAULT_BYTES
from schemas.error_code import ErrorCode
from schemas.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from schemas.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic

logger = logging.getLogger(__name__)

MOST_REPLICAS = 3
"""The number of replicas if none is configured; fewer if there are fewer brokers."""
MAX_MESSAGE_BYTES = "max.message.bytes"
CONFIGS = {
    "cleanup.policy": "compact",
    # One commit, or one group, is one record of at most this size. The brokers' default may be lower.
    MAX_MESSAGE_BYTES: str(DEFAULT_BYTES),
    # A leader is fenced for a day after the timestamp of its last batch. So the timestamp must not come from
    # a machine whose clock is wrong.
    "message.timestamp.type": "LogAppendTime",
    # Kafka removes the ends of transactions after that. All kshim processes may be down for so long after
    # one.
    "delete.retention.ms": "604800000",
    "compression.type": "producer",
    "segment.bytes": "104857600",
    "unclean.leader.election.enable": "false",
}
TOPIC = 2
"""The resource type of a topic in DescribeConfigs."""
TRIES = 60
PAUSE_S = 0.25
_NOT_YET = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_CONTROLLER,
)

Ask = Callable[[object], Deferred[Any]]


class Wanted(NamedTuple):
    """The topic as it is configured."""

    name: str
    partitions: int
    replicas: int
    """The number of replicas, or AS_MANY_AS_CAN_BE."""


async def find_or_make(ask: Ask, clock: Clock, wanted: Wanted) -> int:
    """Return the topic's number of partitions; create the topic if there is none.

    ask: asks any broker; errbacks LinkError. Raises StorageError, in words for the user.
    """
    last = "it does not come into being"
    for _ in range(TRIES):
        try:
            found = await ask(
                MetadataRequest(
                    topics=(MetadataRequestTopic(name=wanted.name),), allow_auto_topic_creation=False
                )
            )
            (topic,) = found.topics
            if topic.error_code == ErrorCode.NONE and topic.partitions:
                return len(topic.partitions)
            if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise _refused(
                    wanted.name, "DESCRIBE, READ and WRITE on the topic", "TOPIC_AUTHORIZATION_FAILED"
                )
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                last = await _make(ask, wanted, len(found.brokers))
        except LinkError as error:
            last = str(error)
        await after(clock, PAUSE_S)
    raise StorageError(f"the upstream's topic {wanted.name}: {last}")


async def max_message_bytes(ask: Ask, topic: str) -> int:
    """Return the topic's largest batch in bytes; Kafka's default if kshim may not ask. Raises LinkError."""
    asked = DescribeConfigsResource(
        resource_type=TOPIC, resource_name=topic, configuration_keys=(MAX_MESSAGE_BYTES,)
    )
    (result,) = (await ask(DescribeConfigsRequest(resources=(asked,)))).results
    found = [each.value or "" for each in result.configs if each.name == MAX_MESSAGE_BYTES]
    return int(found[0]) if found and found[0].isdigit() else DEFAULT_BYTES


async def _make(ask: Ask, wanted: Wanted, brokers: int) -> str:
    """Ask for the topic to be created; return why it was not, if it may be later. Raises StorageError."""
    replicas = min(MOST_REPLICAS, brokers) if wanted.replicas == AS_MANY_AS_CAN_BE else wanted.replicas
    configs = {**CONFIGS, "min.insync.replicas": str(max(1, replicas - 1))}
    topic = CreatableTopic(
        name=wanted.name,
        num_partitions=wanted.partitions,
        replication_factor=replicas,
        configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in configs.items()),
    )
    (made,) = (await ask(CreateTopicsRequest(topics=(topic,), timeout_ms=5_000))).topics
    if made.error_code == ErrorCode.NONE:
        logger.info("made topic %s in the upstream, with %d replicas", wanted.name, replicas)
    elif made.error_code not in _NOT_YET:
        name = ErrorCode(made.error_code).name
        raise _refused(wanted.name, "CREATE on the cluster or the topic", f"{name}: {made.error_message}")
    return f"error {made.error_code}"


def _refused(topic: str, needed: str, why: str) -> StorageError:
    return StorageError(
        f"the upstream refuses topic {topic}, where groups are kept; kshim needs {needed}: {why}"
    )
