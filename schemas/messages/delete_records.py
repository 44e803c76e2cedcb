"""DeleteRecords (21): delete the records of partitions below an offset (KIP-107).

v2 flexible. An offset of -1 stands for the high watermark.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int16, int32, int64, string


@entity
class DeleteRecordsPartition:
    partition_index: int = field(int32)
    offset: int = field(int64)


@entity
class DeleteRecordsTopic:
    name: str = field(string)
    partitions: tuple[DeleteRecordsPartition, ...] = field(array(DeleteRecordsPartition))


@message(api_key=ApiKey.DELETE_RECORDS, versions=range(0, 3), flexible=2)
class DeleteRecordsRequest:
    topics: tuple[DeleteRecordsTopic, ...] = field(array(DeleteRecordsTopic))
    timeout_ms: int = field(int32)


@entity
class DeleteRecordsPartitionResult:
    partition_index: int = field(int32)
    low_watermark: int = field(int64)
    error_code: int = field(int16)


@entity
class DeleteRecordsTopicResult:
    name: str = field(string)
    partitions: tuple[DeleteRecordsPartitionResult, ...] = field(array(DeleteRecordsPartitionResult))


@message(api_key=ApiKey.DELETE_RECORDS, versions=range(0, 3), flexible=2)
class DeleteRecordsResponse:
    throttle_time_ms: int = field(int32)
    topics: tuple[DeleteRecordsTopicResult, ...] = field(array(DeleteRecordsTopicResult))
