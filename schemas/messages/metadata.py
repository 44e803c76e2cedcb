"""Metadata (3): brokers, topics, partitions and their leaders.

v1 null for "all topics", rack, controller_id, is_internal; v2 cluster_id (KIP-78); v3 throttle_time_ms;
v4 allow_auto_topic_creation; v5 offline_replicas (KIP-112); v7 leader_epoch (KIP-320); v8 authorized
operations (KIP-430); v9 flexible; v10 topic ids (KIP-516), which may be asked for from v12; v11 leaves the
cluster's authorized operations to DescribeCluster (KIP-700); v13 error_code for the whole (KIP-1102).

v0 asks for all topics with an empty array; from v1 on empty means none and null means all. An
authorized_operations bit field is -2**31 unless the request asks for it.
"""

from collections.abc import Sequence
from uuid import UUID

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, boolean, int16, int32, nullable_string, string, uuid


@entity
class MetadataRequestTopic:
    topic_id: UUID = field(uuid, since=10)
    name: str | None = field(string, nullable_since=10)


@message(api_key=ApiKey.METADATA, versions=range(0, 14), flexible=9)
class MetadataRequest:
    topics: tuple[MetadataRequestTopic, ...] | None = field(array(MetadataRequestTopic), nullable_since=1)
    allow_auto_topic_creation: bool = field(boolean, since=4, default=True)
    include_cluster_authorized_operations: bool = field(boolean, since=8, until=10)
    include_topic_authorized_operations: bool = field(boolean, since=8)


@entity
class MetadataResponseBroker:
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(nullable_string, since=1, default=None)


@entity
class MetadataResponsePartition:
    error_code: int = field(int16)
    partition_index: int = field(int32)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32, since=7, default=-1)
    replica_nodes: tuple[int, ...] = field(array(int32))
    isr_nodes: tuple[int, ...] = field(array(int32))
    offline_replicas: tuple[int, ...] = field(array(int32), since=5)


@entity
class MetadataResponseTopic:
    error_code: int = field(int16)
    name: str | None = field(string, nullable_since=12)
    topic_id: UUID = field(uuid, since=10)
    is_internal: bool = field(boolean, since=1)
    partitions: Sequence[MetadataResponsePartition] = field(array(MetadataResponsePartition))
    topic_authorized_operations: int = field(int32, since=8, default=-(1 << 31))


@message(api_key=ApiKey.METADATA, versions=range(0, 14), flexible=9)
class MetadataResponse:
    throttle_time_ms: int = field(int32, since=3)
    brokers: tuple[MetadataResponseBroker, ...] = field(array(MetadataResponseBroker))
    cluster_id: str | None = field(nullable_string, since=2, default=None)
    controller_id: int = field(int32, since=1, default=-1)
    topics: tuple[MetadataResponseTopic, ...] = field(array(MetadataResponseTopic))
    cluster_authorized_operations: int = field(int32, since=8, until=10, default=-(1 << 31))
    error_code: int = field(int16, since=13)
