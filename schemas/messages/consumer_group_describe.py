"""ConsumerGroupDescribe (69): epochs, members and assignments of groups of the consumer protocol (KIP-848).

v1 member_type (KIP-1099). An authorized_operations bit field is -2**31 unless the request asks for it.
"""

from uuid import UUID

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, boolean, int8, int16, int32, nullable_string, string, uuid


@message(api_key=ApiKey.CONSUMER_GROUP_DESCRIBE, versions=range(0, 2), flexible=0)
class ConsumerGroupDescribeRequest:
    group_ids: tuple[str, ...] = field(array(string))
    include_authorized_operations: bool = field(boolean)


@entity
class TopicPartitions:
    topic_id: UUID = field(uuid)
    topic_name: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


@entity
class Assignment:
    topic_partitions: tuple[TopicPartitions, ...] = field(array(TopicPartitions))


@entity
class Member:
    member_id: str = field(string)
    instance_id: str | None = field(nullable_string, default=None)
    rack_id: str | None = field(nullable_string, default=None)
    member_epoch: int = field(int32)
    client_id: str = field(string)
    client_host: str = field(string)
    subscribed_topic_names: tuple[str, ...] = field(array(string))
    subscribed_topic_regex: str | None = field(nullable_string, default=None)
    assignment: Assignment = field(Assignment)
    target_assignment: Assignment = field(Assignment)
    member_type: int = field(int8, since=1, default=-1)
    """0 for a classic member, 1 for a consumer member, -1 if unknown."""


@entity
class DescribedGroup:
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string, default=None)
    group_id: str = field(string)
    group_state: str = field(string)
    group_epoch: int = field(int32)
    assignment_epoch: int = field(int32)
    assignor_name: str = field(string)
    members: tuple[Member, ...] = field(array(Member))
    authorized_operations: int = field(int32, default=-(1 << 31))


@message(api_key=ApiKey.CONSUMER_GROUP_DESCRIBE, versions=range(0, 2), flexible=0)
class ConsumerGroupDescribeResponse:
    throttle_time_ms: int = field(int32)
    groups: tuple[DescribedGroup, ...] = field(array(DescribedGroup))
