"""Produce (0): append record batches to partitions.

v3 transactional_id, record batch format v2; v4 KAFKA_STORAGE_ERROR; v5 log_start_offset; v7 zstd batches
(KIP-110); v8 record_errors and error_message (KIP-467); v9 flexible; v10 current_leader and node_endpoints
(KIP-951); v11 TRANSACTION_ABORTABLE, v12 adds the partition to the transaction by itself (KIP-890); v13 topic
ids (KIP-516). Kafka 4.0 removed v0-2.

acks: 0 for no answer; 1 for an answer once the leader has the batch; -1 once all in-sync replicas have it.
"""

from uuid import UUID

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int16, int32, int64, nullable_string, records, string, uuid


@entity
class PartitionProduceData:
    index: int = field(int32)
    records: bytes | memoryview | None = field(records)


@entity
class TopicProduceData:
    name: str = field(string, until=12)
    topic_id: UUID = field(uuid, since=13)
    partition_data: tuple[PartitionProduceData, ...] = field(array(PartitionProduceData))


@message(api_key=ApiKey.PRODUCE, versions=range(3, 14), flexible=9)
class ProduceRequest:
    transactional_id: str | None = field(nullable_string, default=None)
    acks: int = field(int16)
    timeout_ms: int = field(int32)
    topic_data: tuple[TopicProduceData, ...] = field(array(TopicProduceData))


@entity
class BatchIndexAndErrorMessage:
    batch_index: int = field(int32)
    batch_index_error_message: str | None = field(nullable_string, default=None)


@entity
class LeaderIdAndEpoch:
    leader_id: int = field(int32, default=-1)
    leader_epoch: int = field(int32, default=-1)


@entity
class PartitionProduceResponse:
    index: int = field(int32)
    error_code: int = field(int16)
    base_offset: int = field(int64)
    log_append_time_ms: int = field(int64, default=-1)
    log_start_offset: int = field(int64, since=5, default=-1)
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = field(array(BatchIndexAndErrorMessage), since=8)
    error_message: str | None = field(nullable_string, since=8, default=None)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, since=10, tag=0)


@entity
class TopicProduceResponse:
    name: str = field(string, until=12)
    topic_id: UUID = field(uuid, since=13)
    partition_responses: tuple[PartitionProduceResponse, ...] = field(array(PartitionProduceResponse))


@entity
class NodeEndpoint:
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(nullable_string, default=None)


@message(api_key=ApiKey.PRODUCE, versions=range(3, 14), flexible=9)
class ProduceResponse:
    responses: tuple[TopicProduceResponse, ...] = field(array(TopicProduceResponse))
    throttle_time_ms: int = field(int32)
    node_endpoints: tuple[NodeEndpoint, ...] = field(array(NodeEndpoint), since=10, tag=0)
