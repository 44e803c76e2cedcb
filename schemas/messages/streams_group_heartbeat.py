"""StreamsGroupHeartbeat (88): an instance of a Kafka Streams application joins, stays in or leaves its group
(KIP-1071).

v1 acceptable_recovery_lag has 64 bits, topology_description_required (KIP-1331).
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import (
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    nullable,
    nullable_array,
    nullable_string,
    string,
    uint16,
)


@entity
class KeyValue:
    key: str = field(string)
    value: str = field(string)


@entity
class TopicInfo:
    name: str = field(string)
    partitions: int = field(int32)
    replication_factor: int = field(int16)
    topic_configs: tuple[KeyValue, ...] = field(array(KeyValue))


@entity
class Endpoint:
    host: str = field(string)
    port: int = field(uint16)


@entity
class TaskOffset:
    subtopology_id: str = field(string)
    partition: int = field(int32)
    offset: int = field(int64)


@entity
class TaskIds:
    subtopology_id: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


@entity
class CopartitionGroup:
    source_topics: tuple[int, ...] = field(array(int16))
    source_topic_regex: tuple[int, ...] = field(array(int16))
    repartition_source_topics: tuple[int, ...] = field(array(int16))


@entity
class Subtopology:
    subtopology_id: str = field(string)
    source_topics: tuple[str, ...] = field(array(string))
    source_topic_regex: tuple[str, ...] = field(array(string))
    state_changelog_topics: tuple[TopicInfo, ...] = field(array(TopicInfo))
    repartition_sink_topics: tuple[str, ...] = field(array(string))
    repartition_source_topics: tuple[TopicInfo, ...] = field(array(TopicInfo))
    copartition_groups: tuple[CopartitionGroup, ...] = field(array(CopartitionGroup))


@entity
class Topology:
    epoch: int = field(int32)
    subtopologies: tuple[Subtopology, ...] = field(array(Subtopology))


@message(api_key=ApiKey.STREAMS_GROUP_HEARTBEAT, versions=range(0, 2), flexible=0)
class StreamsGroupHeartbeatRequest:
    group_id: str = field(string)
    member_id: str = field(string)
    member_epoch: int = field(int32)
    endpoint_information_epoch: int = field(int32)
    instance_id: str | None = field(nullable_string, default=None)
    rack_id: str | None = field(nullable_string, default=None)
    rebalance_timeout_ms: int = field(int32, default=-1)
    topology: Topology | None = field(nullable(Topology), default=None)
    active_tasks: tuple[TaskIds, ...] | None = field(nullable_array(TaskIds), default=None)
    standby_tasks: tuple[TaskIds, ...] | None = field(nullable_array(TaskIds), default=None)
    warmup_tasks: tuple[TaskIds, ...] | None = field(nullable_array(TaskIds), default=None)
    process_id: str | None = field(nullable_string, default=None)
    user_endpoint: Endpoint | None = field(nullable(Endpoint), default=None)
    client_tags: tuple[KeyValue, ...] | None = field(nullable_array(KeyValue), default=None)
    task_offsets: tuple[TaskOffset, ...] | None = field(nullable_array(TaskOffset), default=None)
    task_end_offsets: tuple[TaskOffset, ...] | None = field(nullable_array(TaskOffset), default=None)
    shutdown_application: bool = field(boolean)


@entity
class Status:
    status_code: int = field(int8)
    status_detail: str = field(string)


@entity
class TopicPartition:
    topic: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


@entity
class EndpointToPartitions:
    user_endpoint: Endpoint = field(Endpoint)
    active_partitions: tuple[TopicPartition, ...] = field(array(TopicPartition))
    standby_partitions: tuple[TopicPartition, ...] = field(array(TopicPartition))


@message(api_key=ApiKey.STREAMS_GROUP_HEARTBEAT, versions=range(0, 2), flexible=0)
class StreamsGroupHeartbeatResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string, default=None)
    member_id: str = field(string)
    member_epoch: int = field(int32)
    heartbeat_interval_ms: int = field(int32)
    acceptable_recovery_lag_legacy: int = field(int32, until=0)
    task_offset_interval_ms: int = field(int32)
    acceptable_recovery_lag: int = field(int64, since=1, default=-1)
    status: tuple[Status, ...] | None = field(nullable_array(Status))
    active_tasks: tuple[TaskIds, ...] | None = field(nullable_array(TaskIds), default=None)
    standby_tasks: tuple[TaskIds, ...] | None = field(nullable_array(TaskIds), default=None)
    warmup_tasks: tuple[TaskIds, ...] | None = field(nullable_array(TaskIds), default=None)
    topology_description_required: bool = field(boolean, since=1)
    endpoint_information_epoch: int = field(int32)
    partitions_by_user_endpoint: tuple[EndpointToPartitions, ...] | None = field(
        nullable_array(EndpointToPartitions), default=None
    )
