"""Creates, describes, alters and deletes topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kshim.client.cluster import Cluster, Retry, retry_or_check
from kshim.client.faults import Refused, check
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from schemas.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from schemas.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from schemas.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from schemas.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

BROKERS_DEFAULT: Final = -1
TOPIC: Final = 2
SET: Final = 0
DELETE: Final = 1
_STATES_BY_NAME_OR_ID: Final = 6
_DEFAULTS_SINCE: Final = 4
"""The version of CreateTopics from which on a broker takes BROKERS_DEFAULT."""
SOURCES: Final[Mapping[int, str]] = {
    1: "topic",
    2: "broker",
    3: "all brokers",
    4: "server.properties",
    5: "default",
    8: "group",
}


class Config(NamedTuple):
    """One config of a topic, and where its value comes from."""

    name: str
    value: str | None
    """None for a secret."""
    source: str
    is_own: bool
    """True if it is set for the topic itself."""


def create(
    cluster: Cluster,
    name: str,
    *,
    partitions: int | None = None,
    replicas: int | None = None,
    configs: Mapping[str, str] | None = None,
    only_check: bool = False,
) -> None:
    """Create a topic. None stands for the broker's default. Raises Refused, ClientError.

    only_check: True to create nothing, but be refused where it would be.
    """

    given = (configs or {}).items()

    def ask() -> None:
        connection = cluster.controller()
        takes_default = connection.version(ApiKey.CREATE_TOPICS) >= _DEFAULTS_SINCE
        default = BROKERS_DEFAULT if takes_default else 1
        topic = CreatableTopic(
            name=name,
            num_partitions=default if partitions is None else partitions,
            replication_factor=default if replicas is None else replicas,
            configs=tuple(CreatableTopicConfig(name=key, value=text) for key, text in given),
        )
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=_ms(cluster), validate_only=only_check)
        (done,) = cluster.ask(connection, request).topics
        _check_controller(cluster, f"topic {name}", done.error_code, done.error_message)

    cluster.until_done(ask)


def delete(cluster: Cluster, name: str) -> None:
    """Delete a topic with its records. Raises ClientError."""

    def ask() -> None:
        connection = cluster.controller()
        if connection.version(ApiKey.DELETE_TOPICS) >= _STATES_BY_NAME_OR_ID:
            request = DeleteTopicsRequest(topics=(DeleteTopicState(name=name),), timeout_ms=_ms(cluster))
        else:
            request = DeleteTopicsRequest(topic_names=(name,), timeout_ms=_ms(cluster))
        (done,) = cluster.ask(connection, request).responses
        _check_controller(cluster, f"topic {name}", done.error_code, done.error_message)

    cluster.until_done(ask)


def add_partitions(cluster: Cluster, name: str, count: int) -> None:
    """Give a topic `count` partitions, which must be more than it has. Raises Refused, ClientError."""

    def ask() -> None:
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        request = CreatePartitionsRequest(topics=(topic,), timeout_ms=_ms(cluster))
        (done,) = cluster.ask(cluster.controller(), request).results
        _check_controller(cluster, f"topic {name}", done.error_code, done.error_message)

    cluster.until_done(ask)


def alter_configs(cluster: Cluster, name: str, given: Mapping[str, str], unset: Iterable[str]) -> None:
    """Set and unset configs of a topic. Raises Refused, ClientError."""
    changes = [
        *(AlterableConfig(name=key, config_operation=SET, value=text) for key, text in given.items()),
        *(AlterableConfig(name=key, config_operation=DELETE, value=None) for key in unset),
    ]

    def ask() -> None:
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=tuple(changes))
        request = IncrementalAlterConfigsRequest(resources=(resource,))
        (done,) = cluster.ask(cluster.controller(), request).responses
        _check_controller(cluster, f"topic {name}", done.error_code, done.error_message)

    cluster.until_done(ask)


def configs(cluster: Cluster, name: str) -> Sequence[Config]:
    """The configs of a topic, by name. Raises ClientError."""

    def ask() -> Sequence[Config]:
        resource = DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=None)
        (found,) = cluster.ask(cluster.any(), DescribeConfigsRequest(resources=(resource,))).results
        retry_or_check(f"configs of topic {name}", found.error_code, found.error_message)
        listed = sorted(found.configs, key=lambda each: each.name)
        return [
            Config(each.name, each.value, SOURCES.get(each.config_source, "default"), each.config_source == 1)
            for each in listed
        ]

    return cluster.until_done(ask)


def _check_controller(cluster: Cluster, operation: str, error_code: int, message: str | None) -> None:
    """Raise Retry if another broker is the controller, Refused for any other error."""
    try:
        check(operation, error_code, message)
    except Refused as refused:
        if error_code in (ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED):
            cluster.controller_id = BROKERS_DEFAULT
            raise Retry(refused) from None
        raise


def _ms(cluster: Cluster) -> int:
    return int(cluster.settings.timeout_s * 1000)
