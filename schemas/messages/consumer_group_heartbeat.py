"""ConsumerGroupHeartbeat (68): a member joins, stays in or leaves a group of the consumer protocol (KIP-848).

v1 subscribed_topic_regex; the client makes its own member id (KIP-1082).
"""

from uuid import UUID

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import (
    array,
    int16,
    int32,
    nullable,
    nullable_array,
    nullable_string,
    string,
    uuid,
)


@entity
class TopicPartitions:
    topic_id: UUID = field(uuid)
    partitions: tuple[int, ...] = field(array(int32))


@message(api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=range(0, 2), flexible=0)
class ConsumerGroupHeartbeatRequest:
    group_id: str = field(string)
    member_id: str = field(string)
    member_epoch: int = field(int32)
    instance_id: str | None = field(nullable_string, default=None)
    rack_id: str | None = field(nullable_string, default=None)
    rebalance_timeout_ms: int = field(int32, default=-1)
    subscribed_topic_names: tuple[str, ...] | None = field(nullable_array(string), default=None)
    subscribed_topic_regex: str | None = field(nullable_string, since=1, default=None)
    server_assignor: str | None = field(nullable_string, default=None)
    topic_partitions: tuple[TopicPartitions, ...] | None = field(
        nullable_array(TopicPartitions), default=None
    )


@entity
class Assignment:
    topic_partitions: tuple[TopicPartitions, ...] = field(array(TopicPartitions))


@message(api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=range(0, 2), flexible=0)
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string, default=None)
    member_id: str | None = field(nullable_string, default=None)
    member_epoch: int = field(int32)
    heartbeat_interval_ms: int = field(int32)
    assignment: Assignment | None = field(nullable(Assignment), default=None)
