"""The verbs of administrators: about topics, configs, partitions and the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from integration.differential.words.history import Ask, TopicId, Word
from integration.differential.words.records import TIMEOUT_MS, ZERO_ID
from schemas.messages import alter_configs as legacy
from schemas.messages import incremental_alter_configs as incremental
from schemas.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from schemas.messages.create_acls import AclCreation, CreateAclsRequest
from schemas.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from schemas.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from schemas.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from schemas.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from schemas.messages.describe_acls import DescribeAclsRequest
from schemas.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from schemas.messages.describe_cluster import DescribeClusterRequest
from schemas.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from schemas.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from schemas.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from schemas.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from schemas.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from schemas.messages.list_config_resources import ListConfigResourcesRequest
from schemas.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic

SET, DELETE, APPEND, SUBTRACT = range(4)
Configs = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, repr=False)
class New(Word):
    """A topic to create."""

    name: str = ""
    partitions: int = 1
    replicas: int = 1
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """Each partition and its brokers."""
    configs: Configs = ()


@dataclass(frozen=True, repr=False)
class More(Word):
    """A topic to grow to `count` partitions."""

    name: str = ""
    count: int = 1
    assignments: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, repr=False)
class Of(Word):
    """A resource, and what is asked about its configs."""

    type: int = 2
    name: str = ""
    configs: tuple[Any, ...] | None = ()
    """Names, or (name, value), or (name, operation, value)."""


def create_topics(client: str, *topics: New, validate_only: bool = False, **options: Any) -> Ask:
    request = CreateTopicsRequest(
        topics=tuple(
            CreatableTopic(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replicas,
                assignments=tuple(
                    CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
                    for index, brokers in topic.assignments
                ),
                configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in topic.configs),
            )
            for topic in topics
        ),
        timeout_ms=TIMEOUT_MS,
        validate_only=validate_only,
    )
    return Ask(client=client, request=request, **options)


def delete_topics(client: str, *topics: str | TopicId | UUID | tuple[str, Any], **options: Any) -> Ask:
    """DeleteTopics by name, by id, or (name, id) by both; below v6 only those that have a name."""

    def state(topic: Any) -> DeleteTopicState:
        name, topic_id = topic if isinstance(topic, tuple) else (topic, ZERO_ID)
        if not isinstance(name, str):
            name, topic_id = None, name
        return DeleteTopicState(name=name, topic_id=topic_id)

    states = tuple(state(topic) for topic in topics)
    names = tuple(each.name for each in states if each.name is not None)
    request = DeleteTopicsRequest(topics=states, topic_names=names, timeout_ms=TIMEOUT_MS)
    return Ask(client=client, request=request, **options)


def create_partitions(client: str, *topics: More, validate_only: bool = False, **options: Any) -> Ask:
    def assignments(brokers: Sequence[tuple[int, ...]]) -> tuple[CreatePartitionsAssignment, ...]:
        return tuple(CreatePartitionsAssignment(broker_ids=ids) for ids in brokers)

    request = CreatePartitionsRequest(
        topics=tuple(
            CreatePartitionsTopic(
                name=topic.name,
                count=topic.count,
                assignments=None if topic.assignments is None else assignments(topic.assignments),
            )
            for topic in topics
        ),
        timeout_ms=TIMEOUT_MS,
        validate_only=validate_only,
    )
    return Ask(client=client, request=request, **options)


def describe_configs(
    client: str, *resources: Of, synonyms: bool = False, documentation: bool = False, **options: Any
) -> Ask:
    request = DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(
                resource_type=each.type, resource_name=each.name, configuration_keys=each.configs
            )
            for each in resources
        ),
        include_synonyms=synonyms,
        include_documentation=documentation,
    )
    return Ask(client=client, request=request, **options)


def alter_configs(client: str, *resources: Of, validate_only: bool = False, **options: Any) -> Ask:
    """AlterConfigs: configs that are not named are reset."""
    request = legacy.AlterConfigsRequest(
        resources=tuple(
            legacy.AlterConfigsResource(
                resource_type=each.type,
                resource_name=each.name,
                configs=tuple(
                    legacy.AlterableConfig(name=name, value=value) for name, value in each.configs or ()
                ),
            )
            for each in resources
        ),
        validate_only=validate_only,
    )
    return Ask(client=client, request=request, **options)


def change_configs(client: str, *resources: Of, validate_only: bool = False, **options: Any) -> Ask:
    """IncrementalAlterConfigs."""
    request = incremental.IncrementalAlterConfigsRequest(
        resources=tuple(
            incremental.AlterConfigsResource(
                resource_type=each.type,
                resource_name=each.name,
                configs=tuple(
                    incremental.AlterableConfig(name=name, config_operation=operation, value=value)
                    for name, operation, value in each.configs or ()
                ),
            )
            for each in resources
        ),
        validate_only=validate_only,
    )
    return Ask(client=client, request=request, **options)


def metadata(
    client: str, *topics: str | TopicId | UUID | tuple[str | None, Any] | None, **options: Any
) -> Ask:
    """Metadata of topics by name, by id, or (name, id) by both."""

    def topic_of(topic: Any) -> MetadataRequestTopic:
        if isinstance(topic, tuple):
            return MetadataRequestTopic(name=topic[0], topic_id=topic[1])
        is_name = topic is None or isinstance(topic, str)
        return MetadataRequestTopic(name=topic if is_name else None, topic_id=ZERO_ID if is_name else topic)

    authorized = options.pop("authorized", False)
    request = MetadataRequest(
        topics=tuple(topic_of(topic) for topic in topics),
        allow_auto_topic_creation=options.pop("creates", False),
        include_cluster_authorized_operations=authorized,
        include_topic_authorized_operations=authorized,
    )
    return Ask(client=client, request=request, **options)


def describe_topics(
    client: str, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None, **options: Any
) -> Ask:
    """DescribeTopicPartitions."""
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in names),
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return Ask(client=client, request=request, **options)


def describe_log_dirs(
    client: str, *topics: tuple[str, tuple[int, ...]], all: bool = False, **options: Any
) -> Ask:
    """DescribeLogDirs of some partitions, or of all."""
    some = tuple(DescribableLogDirTopic(topic=name, partitions=which) for name, which in topics)
    request = DescribeLogDirsRequest(topics=None if all else some)
    return Ask(client=client, request=request, **options)


def elect_leaders(
    client: str, *topics: tuple[str, tuple[int, ...]], election_type: int = 0, **options: Any
) -> Ask:
    request = ElectLeadersRequest(
        election_type=election_type,
        topic_partitions=tuple(TopicPartitions(topic=name, partitions=which) for name, which in topics),
        timeout_ms=TIMEOUT_MS,
    )
    return Ask(client=client, request=request, **options)


def reassign(
    client: str,
    *topics: tuple[str, tuple[tuple[int, tuple[int, ...] | None], ...]],
    may_change_count: bool = True,
    **options: Any,
) -> Ask:
    """AlterPartitionReassignments of (topic, ((partition, brokers), …))."""
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=TIMEOUT_MS,
        allow_replication_factor_change=may_change_count,
        topics=tuple(
            ReassignableTopic(
                name=name,
                partitions=tuple(
                    ReassignablePartition(partition_index=index, replicas=replicas)
                    for index, replicas in parts
                ),
            )
            for name, parts in topics
        ),
    )
    return Ask(client=client, request=request, **options)


def list_reassignments(client: str, *topics: tuple[str, tuple[int, ...]], **options: Any) -> Ask:
    """ListPartitionReassignments of some partitions, or of all topics."""
    asked = tuple(
        ListPartitionReassignmentsTopics(name=name, partition_indexes=which) for name, which in topics
    )
    request = ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=asked or None)
    return Ask(client=client, request=request, **options)


def list_config_resources(client: str, *types: int, **options: Any) -> Ask:
    return Ask(client=client, request=ListConfigResourcesRequest(resource_types=types), **options)


def describe_cluster(
    client: str, *, authorized: bool = False, endpoint_type: int = 1, fenced: bool = False, **options: Any
) -> Ask:
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=authorized,
        endpoint_type=endpoint_type,
        include_fenced_brokers=fenced,
    )
    return Ask(client=client, request=request, **options)


def describe_quotas(
    client: str, *components: tuple[str, int, str | None], strict: bool = False, **options: Any
) -> Ask:
    """DescribeClientQuotas of (entity type, match type, match)."""
    data = tuple(
        ComponentData(entity_type=kind, match_type=match_type, match=match)
        for kind, match_type, match in components
    )
    return Ask(client=client, request=DescribeClientQuotasRequest(components=data, strict=strict), **options)


def describe_passwords(client: str, *users: str, **options: Any) -> Ask:
    """DescribeUserScramCredentials of some users, or of all."""
    asked = tuple(UserName(name=user) for user in users)
    return Ask(client=client, request=DescribeUserScramCredentialsRequest(users=asked or None), **options)


Acl = tuple[int, str | None, int, str | None, str | None, int, int]
"""Resource type and name, pattern type, principal, host, operation, permission."""


def describe_acls(client: str, acl: Acl, **options: Any) -> Ask:
    kind, name, pattern, principal, host, operation, permission = acl
    request = DescribeAclsRequest(
        resource_type_filter=kind,
        resource_name_filter=name,
        pattern_type_filter=pattern,
        principal_filter=principal,
        host_filter=host,
        operation=operation,
        permission_type=permission,
    )
    return Ask(client=client, request=request, **options)


def delete_acls(client: str, *acls: Acl, **options: Any) -> Ask:
    filters = tuple(
        DeleteAclsFilter(
            resource_type_filter=kind,
            resource_name_filter=name,
            pattern_type_filter=pattern,
            principal_filter=principal,
            host_filter=host,
            operation=operation,
            permission_type=permission,
        )
        for kind, name, pattern, principal, host, operation, permission in acls
    )
    return Ask(client=client, request=DeleteAclsRequest(filters=filters), **options)


def create_acls(client: str, *acls: Acl, **options: Any) -> Ask:
    creations = tuple(
        AclCreation(
            resource_type=kind,
            resource_name=name or "",
            resource_pattern_type=pattern,
            principal=principal or "",
            host=host or "",
            operation=operation,
            permission_type=permission,
        )
        for kind, name, pattern, principal, host, operation, permission in acls
    )
    return Ask(client=client, request=CreateAclsRequest(creations=creations), **options)
