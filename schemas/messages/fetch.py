"""Fetch (1): read record batches of partitions.

v4 isolation_level and aborted transactions (KIP-98); v5 log_start_offset (KIP-107); v7 fetch sessions
(KIP-227); v9 current_leader_epoch fences stale readers (KIP-320); v10 zstd batches (KIP-110); v11 rack_id and
preferred_read_replica (KIP-392); v12 flexible, last_fetched_epoch and diverging_epoch (KIP-595); v13 topic
ids (KIP-516); v14 OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405); v15 replica_state in place of replica_id
(KIP-903); v16 node_endpoints (KIP-951); v17 replica_directory_id (KIP-853); v18 high_watermark in the request
(KIP-1166). Kafka 4.0 removed v0-3.

isolation_level: 0 read uncommitted, 1 read committed. A consumer's replica_id is -1.
"""

from collections.abc import Sequence
from uuid import UUID

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import (
    array,
    int8,
    int16,
    int32,
    int64,
    nullable_array,
    nullable_string,
    records,
    string,
    uuid,
)


@entity
class ReplicaState:
    replica_id: int = field(int32, default=-1)
    replica_epoch: int = field(int64, default=-1)


@entity
class FetchPartition:
    partition: int = field(int32)
    current_leader_epoch: int = field(int32, since=9, default=-1)
    fetch_offset: int = field(int64)
    last_fetched_epoch: int = field(int32, since=12, default=-1)
    log_start_offset: int = field(int64, since=5, default=-1)
    partition_max_bytes: int = field(int32)
    replica_directory_id: UUID = field(uuid, since=17, tag=0)
    high_watermark: int = field(int64, since=18, default=(1 << 63) - 1, tag=1)


@entity
class FetchTopic:
    topic: str = field(string, until=12)
    topic_id: UUID = field(uuid, since=13)
    partitions: tuple[FetchPartition, ...] = field(array(FetchPartition))


@entity
class ForgottenTopic:
    topic: str = field(string, until=12)
    topic_id: UUID = field(uuid, since=13)
    partitions: tuple[int, ...] = field(array(int32))


@message(api_key=ApiKey.FETCH, versions=range(4, 19), flexible=12)
class FetchRequest:
    cluster_id: str | None = field(nullable_string, since=12, default=None, tag=0)
    replica_id: int = field(int32, until=14, default=-1)
    replica_state: ReplicaState = field(ReplicaState, since=15, tag=1)
    max_wait_ms: int = field(int32)
    min_bytes: int = field(int32)
    max_bytes: int = field(int32, default=0x7FFFFFFF)
    isolation_level: int = field(int8)
    session_id: int = field(int32, since=7)
    session_epoch: int = field(int32, since=7, default=-1)
    topics: tuple[FetchTopic, ...] = field(array(FetchTopic))
    forgotten_topics_data: tuple[ForgottenTopic, ...] = field(array(ForgottenTopic), since=7)
    rack_id: str = field(string, since=11)


@entity
class EpochEndOffset:
    epoch: int = field(int32, default=-1)
    end_offset: int = field(int64, default=-1)


@entity
class LeaderIdAndEpoch:
    leader_id: int = field(int32, default=-1)
    leader_epoch: int = field(int32, default=-1)


@entity
class SnapshotId:
    end_offset: int = field(int64, default=-1)
    epoch: int = field(int32, default=-1)


@entity
class AbortedTransaction:
    producer_id: int = field(int64)
    first_offset: int = field(int64)


@entity
class PartitionData:
    partition_index: int = field(int32)
    error_code: int = field(int16)
    high_watermark: int = field(int64)
    last_stable_offset: int = field(int64, default=-1)
    log_start_offset: int = field(int64, since=5, default=-1)
    diverging_epoch: EpochEndOffset = field(EpochEndOffset, since=12, tag=0)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, since=12, tag=1)
    snapshot_id: SnapshotId = field(SnapshotId, since=12, tag=2)
    aborted_transactions: Sequence[AbortedTransaction] | None = field(nullable_array(AbortedTransaction))
    preferred_read_replica: int = field(int32, since=11, default=-1)
    records: bytes | memoryview | None = field(records)


@entity
class FetchableTopicResponse:
    topic: str = field(string, until=12)
    topic_id: UUID = field(uuid, since=13)
    partitions: tuple[PartitionData, ...] = field(array(PartitionData))


@entity
class NodeEndpoint:
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(nullable_string, default=None)


@message(api_key=ApiKey.FETCH, versions=range(4, 19), flexible=12)
class FetchResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, since=7)
    session_id: int = field(int32, since=7)
    responses: tuple[FetchableTopicResponse, ...] = field(array(FetchableTopicResponse))
    node_endpoints: tuple[NodeEndpoint, ...] = field(array(NodeEndpoint), since=16, tag=0)
