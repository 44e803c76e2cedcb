"""ShareGroupHeartbeat (76): a member joins, stays in or leaves a share group (KIP-932).

v0 was an early-access version, and is gone.
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


@message(api_key=ApiKey.SHARE_GROUP_HEARTBEAT, versions=range(1, 2), flexible=0)
class ShareGroupHeartbeatRequest:
    group_id: str = field(string)
    member_id: str = field(string)
    member_epoch: int = field(int32)
    rack_id: str | None = field(nullable_string, default=None)
    subscribed_topic_names: tuple[str, ...] | None = field(nullable_array(string), default=None)


@entity
class TopicPartitions:
    topic_id: UUID = field(uuid)
    partitions: tuple[int, ...] = field(array(int32))


@entity
class Assignment:
    topic_partitions: tuple[TopicPartitions, ...] = field(array(TopicPartitions))


@message(api_key=ApiKey.SHARE_GROUP_HEARTBEAT, versions=range(1, 2), flexible=0)
class ShareGroupHeartbeatResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string, default=None)
    member_id: str | None = field(nullable_string, default=None)
    member_epoch: int = field(int32)
    heartbeat_interval_ms: int = field(int32)
    assignment: Assignment | None = field(nullable(Assignment), default=None)
