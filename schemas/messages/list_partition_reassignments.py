"""ListPartitionReassignments (46): the partitions that are being moved to other replicas (KIP-455).

Null topics stand for all.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int16, int32, nullable_array, nullable_string, string


@entity
class ListPartitionReassignmentsTopics:
    name: str = field(string)
    partition_indexes: tuple[int, ...] = field(array(int32))


@message(api_key=ApiKey.LIST_PARTITION_REASSIGNMENTS, versions=range(0, 1), flexible=0)
class ListPartitionReassignmentsRequest:
    timeout_ms: int = field(int32, default=60000)
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = field(
        nullable_array(ListPartitionReassignmentsTopics), default=None
    )


@entity
class OngoingPartitionReassignment:
    partition_index: int = field(int32)
    replicas: tuple[int, ...] = field(array(int32))
    adding_replicas: tuple[int, ...] = field(array(int32))
    removing_replicas: tuple[int, ...] = field(array(int32))


@entity
class OngoingTopicReassignment:
    name: str = field(string)
    partitions: tuple[OngoingPartitionReassignment, ...] = field(array(OngoingPartitionReassignment))


@message(api_key=ApiKey.LIST_PARTITION_REASSIGNMENTS, versions=range(0, 1), flexible=0)
class ListPartitionReassignmentsResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
    topics: tuple[OngoingTopicReassignment, ...] = field(array(OngoingTopicReassignment))
