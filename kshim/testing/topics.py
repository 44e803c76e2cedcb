"""Creates and deletes the topics of a test."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kshim.testing.brokers import Again, Brokers, check
from schemas.error_code import ErrorCode
from schemas.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from schemas.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

__all__ = ["create_topic", "delete_topics", "own_topics"]

BROKERS_DEFAULT = -1
NOT_THERE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def create_topic(
    brokers: Brokers, name: str, partitions: int | None, replicas: int | None, configs: Mapping[str, str]
) -> None:
    """Create a topic, and wait until its partitions have leaders. None stands for the broker's default.

    Raises Refused, TimeoutError.
    """
    topic = CreatableTopic(
        name=name,
        num_partitions=BROKERS_DEFAULT if partitions is None else partitions,
        replication_factor=BROKERS_DEFAULT if replicas is None else replicas,
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in configs.items()),
    )

    def create() -> None:
        (done,) = brokers.ask_any(CreateTopicsRequest(topics=(topic,)), CreateTopicsResponse).topics
        check(f"create topic {name}", done.error_code, done.error_message)

    brokers.deadline.until_done(create)
    brokers.deadline.until_done(lambda: brokers.topic(name))


def own_topics(brokers: Brokers) -> list[str]:
    """The names of all topics except internal ones. Raises OSError."""
    return sorted(topic.name for topic in brokers.topics(None).values() if not topic.is_internal)


def delete_topics(brokers: Brokers, names: Collection[str]) -> None:
    """Delete topics, and wait until no broker lists them. A topic that does not exist is no error.

    Raises Refused, TimeoutError.
    """

    def delete() -> None:
        request = DeleteTopicsRequest(topic_names=tuple(names), timeout_ms=10_000)
        for done in brokers.ask_any(request, DeleteTopicsResponse).responses:
            if done.error_code != NOT_THERE:
                check(f"delete topic {done.name}", done.error_code)

    def see() -> None:
        if left := sorted(set(names) & set(own_topics(brokers))):
            raise Again(f"still there: topic {', '.join(left)}")

    if names:
        brokers.deadline.until_done(delete)
        brokers.deadline.until_done(see)
