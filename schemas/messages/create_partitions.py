"""CreatePartitions (37): add partitions to topics.

v2 flexible; v3 THROTTLING_QUOTA_EXCEEDED (KIP-599).

count is the new total, not how many to add. Null assignments leave placement to the broker.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, boolean, int16, int32, nullable_array, nullable_string, string


@entity
class CreatePartitionsAssignment:
    broker_ids: tuple[int, ...] = field(array(int32))


@entity
class CreatePartitionsTopic:
    name: str = field(string)
    count: int = field(int32)
    assignments: tuple[CreatePartitionsAssignment, ...] | None = field(
        nullable_array(CreatePartitionsAssignment)
    )


@message(api_key=ApiKey.CREATE_PARTITIONS, versions=range(0, 4), flexible=2)
class CreatePartitionsRequest:
    topics: tuple[CreatePartitionsTopic, ...] = field(array(CreatePartitionsTopic))
    timeout_ms: int = field(int32)
    validate_only: bool = field(boolean)


@entity
class CreatePartitionsTopicResult:
    name: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string, default=None)


@message(api_key=ApiKey.CREATE_PARTITIONS, versions=range(0, 4), flexible=2)
class CreatePartitionsResponse:
    throttle_time_ms: int = field(int32)
    results: tuple[CreatePartitionsTopicResult, ...] = field(array(CreatePartitionsTopicResult))
