"""DescribeLogDirs (35): the directories of partitions, and their sizes (KIP-113).

v2 flexible; v3 a top-level error_code; v4 total_bytes and usable_bytes (KIP-827); v5
is_cordoned (KIP-1066). Kafka 4.0 removed v0.

Null topics stand for all.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, boolean, int16, int32, int64, nullable_array, string


@entity
class DescribableLogDirTopic:
    topic: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


@message(api_key=ApiKey.DESCRIBE_LOG_DIRS, versions=range(1, 6), flexible=2)
class DescribeLogDirsRequest:
    topics: tuple[DescribableLogDirTopic, ...] | None = field(nullable_array(DescribableLogDirTopic))


@entity
class DescribeLogDirsPartition:
    partition_index: int = field(int32)
    partition_size: int = field(int64)
    offset_lag: int = field(int64)
    is_future_key: bool = field(boolean)


@entity
class DescribeLogDirsTopic:
    name: str = field(string)
    partitions: tuple[DescribeLogDirsPartition, ...] = field(array(DescribeLogDirsPartition))


@entity
class DescribeLogDirsResult:
    error_code: int = field(int16)
    log_dir: str = field(string)
    topics: tuple[DescribeLogDirsTopic, ...] = field(array(DescribeLogDirsTopic))
    total_bytes: int = field(int64, since=4, default=-1)
    usable_bytes: int = field(int64, since=4, default=-1)
    is_cordoned: bool = field(boolean, since=5)


@message(api_key=ApiKey.DESCRIBE_LOG_DIRS, versions=range(1, 6), flexible=2)
class DescribeLogDirsResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, since=3)
    results: tuple[DescribeLogDirsResult, ...] = field(array(DescribeLogDirsResult))
