"""CreateTopics (19): create topics, or only check that they could be created.

v1 validate_only; v2 throttle_time_ms; v4 -1 partitions and replicas for the broker's default (KIP-464);
v5 flexible, the created topic's configuration in the response (KIP-525); v6 THROTTLING_QUOTA_EXCEEDED
(KIP-599); v7 topic_id (KIP-516). Kafka 4.0 removed v0-1.
"""

from collections.abc import Sequence
from uuid import UUID

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import (
    array,
    boolean,
    int8,
    int16,
    int32,
    nullable_array,
    nullable_string,
    string,
    uuid,
)


@entity
class CreatableReplicaAssignment:
    partition_index: int = field(int32)
    broker_ids: tuple[int, ...] = field(array(int32))


@entity
class CreatableTopicConfig:
    name: str = field(string)
    value: str | None = field(nullable_string)


@entity
class CreatableTopic:
    name: str = field(string)
    num_partitions: int = field(int32)
    replication_factor: int = field(int16)
    assignments: tuple[CreatableReplicaAssignment, ...] = field(array(CreatableReplicaAssignment))
    configs: tuple[CreatableTopicConfig, ...] = field(array(CreatableTopicConfig))


@message(api_key=ApiKey.CREATE_TOPICS, versions=range(2, 8), flexible=5)
class CreateTopicsRequest:
    topics: tuple[CreatableTopic, ...] = field(array(CreatableTopic))
    timeout_ms: int = field(int32, default=60000)
    validate_only: bool = field(boolean)


@entity
class CreatableTopicConfigs:
    name: str = field(string)
    value: str | None = field(nullable_string)
    read_only: bool = field(boolean)
    config_source: int = field(int8, default=-1)
    is_sensitive: bool = field(boolean)


@entity
class CreatableTopicResult:
    name: str = field(string)
    topic_id: UUID = field(uuid, since=7)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
    topic_config_error_code: int = field(int16, since=5, tag=0)
    num_partitions: int = field(int32, since=5, default=-1)
    replication_factor: int = field(int16, since=5, default=-1)
    configs: tuple[CreatableTopicConfigs, ...] | None = field(nullable_array(CreatableTopicConfigs), since=5)


@message(api_key=ApiKey.CREATE_TOPICS, versions=range(2, 8), flexible=5)
class CreateTopicsResponse:
    throttle_time_ms: int = field(int32)
    topics: Sequence[CreatableTopicResult] = field(array(CreatableTopicResult))
