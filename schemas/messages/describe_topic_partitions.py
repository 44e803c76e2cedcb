"""DescribeTopicPartitions (75): topics and their partitions in pages (KIP-966).

A cursor says where a page begins. Null means the first page in a request, and no further page in a response.
"""

from collections.abc import Sequence
from uuid import UUID

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import (
    array,
    boolean,
    int16,
    int32,
    nullable,
    nullable_array,
    nullable_string,
    string,
    uuid,
)


@entity
class TopicRequest:
    name: str = field(string)


@entity
class Cursor:
    topic_name: str = field(string)
    partition_index: int = field(int32)


@message(api_key=ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions=range(0, 1), flexible=0)
class DescribeTopicPartitionsRequest:
    topics: tuple[TopicRequest, ...] = field(array(TopicRequest))
    response_partition_limit: int = field(int32, default=2000)
    cursor: Cursor | None = field(nullable(Cursor), default=None)


@entity
class DescribeTopicPartitionsResponsePartition:
    error_code: int = field(int16)
    partition_index: int = field(int32)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32, default=-1)
    replica_nodes: tuple[int, ...] = field(array(int32))
    isr_nodes: tuple[int, ...] = field(array(int32))
    eligible_leader_replicas: tuple[int, ...] | None = field(nullable_array(int32), default=None)
    last_known_elr: tuple[int, ...] | None = field(nullable_array(int32), default=None)
    offline_replicas: tuple[int, ...] = field(array(int32))


@entity
class DescribeTopicPartitionsResponseTopic:
    error_code: int = field(int16)
    name: str | None = field(nullable_string)
    topic_id: UUID = field(uuid)
    is_internal: bool = field(boolean)
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = field(
        array(DescribeTopicPartitionsResponsePartition)
    )
    topic_authorized_operations: int = field(int32, default=-2147483648)


@message(api_key=ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions=range(0, 1), flexible=0)
class DescribeTopicPartitionsResponse:
    throttle_time_ms: int = field(int32)
    topics: Sequence[DescribeTopicPartitionsResponseTopic] = field(
        array(DescribeTopicPartitionsResponseTopic)
    )
    next_cursor: Cursor | None = field(nullable(Cursor), default=None)
