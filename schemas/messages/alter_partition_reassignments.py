"""AlterPartitionReassignments (45): move partitions to other replicas (KIP-455).

v1 allow_replication_factor_change (KIP-1040). Null replicas cancel a reassignment.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, boolean, int16, int32, nullable_array, nullable_string, string


@entity
class ReassignablePartition:
    partition_index: int = field(int32)
    replicas: tuple[int, ...] | None = field(nullable_array(int32), default=None)


@entity
class ReassignableTopic:
    name: str = field(string)
    partitions: tuple[ReassignablePartition, ...] = field(array(ReassignablePartition))


@message(api_key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions=range(0, 2), flexible=0)
class AlterPartitionReassignmentsRequest:
    timeout_ms: int = field(int32, default=60000)
    allow_replication_factor_change: bool = field(boolean, since=1, default=True)
    topics: tuple[ReassignableTopic, ...] = field(array(ReassignableTopic))


@entity
class ReassignablePartitionResponse:
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)


@entity
class ReassignableTopicResponse:
    name: str = field(string)
    partitions: tuple[ReassignablePartitionResponse, ...] = field(array(ReassignablePartitionResponse))


@message(api_key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions=range(0, 2), flexible=0)
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: int = field(int32)
    allow_replication_factor_change: bool = field(boolean, since=1, default=True)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
    responses: tuple[ReassignableTopicResponse, ...] = field(array(ReassignableTopicResponse))
