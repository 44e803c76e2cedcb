"""OffsetDelete (47): delete committed offsets of partitions that a group does not consume (KIP-496).

An error that concerns the group is at the top level; then the answer has no topics.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int16, int32, string


@entity
class OffsetDeleteRequestPartition:
    partition_index: int = field(int32)


@entity
class OffsetDeleteRequestTopic:
    name: str = field(string)
    partitions: tuple[OffsetDeleteRequestPartition, ...] = field(array(OffsetDeleteRequestPartition))


@message(api_key=ApiKey.OFFSET_DELETE, versions=range(0, 1), flexible=None)
class OffsetDeleteRequest:
    group_id: str = field(string)
    topics: tuple[OffsetDeleteRequestTopic, ...] = field(array(OffsetDeleteRequestTopic))


@entity
class OffsetDeleteResponsePartition:
    partition_index: int = field(int32)
    error_code: int = field(int16)


@entity
class OffsetDeleteResponseTopic:
    name: str = field(string)
    partitions: tuple[OffsetDeleteResponsePartition, ...] = field(array(OffsetDeleteResponsePartition))


@message(api_key=ApiKey.OFFSET_DELETE, versions=range(0, 1), flexible=None)
class OffsetDeleteResponse:
    error_code: int = field(int16)
    throttle_time_ms: int = field(int32)
    topics: tuple[OffsetDeleteResponseTopic, ...] = field(array(OffsetDeleteResponseTopic))
