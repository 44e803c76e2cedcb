"""DescribeQuorum (55): the leader, the voters and the observers of a Raft quorum (KIP-595).

v0 is flexible already; v1 times of the replicas' fetches (KIP-836); v2 error messages, directory ids and the
listeners of the nodes (KIP-853).

A time that is not known is -1.
"""

from uuid import UUID

from schemas.api_key import ApiKey
from schemas.message import entity, entity_named, field, message
from schemas.primitives import array, int16, int32, int64, nullable_string, string, uint16, uuid


@entity_named("PartitionData")
class RequestPartitionData:
    partition_index: int = field(int32)


@entity_named("TopicData")
class RequestTopicData:
    topic_name: str = field(string)
    partitions: tuple[RequestPartitionData, ...] = field(array(RequestPartitionData))


@message(api_key=ApiKey.DESCRIBE_QUORUM, versions=range(0, 3), flexible=0)
class DescribeQuorumRequest:
    topics: tuple[RequestTopicData, ...] = field(array(RequestTopicData))


@entity
class ReplicaState:
    replica_id: int = field(int32)
    replica_directory_id: UUID = field(uuid, since=2)
    log_end_offset: int = field(int64)
    last_fetch_timestamp: int = field(int64, since=1, default=-1)
    last_caught_up_timestamp: int = field(int64, since=1, default=-1)


@entity
class PartitionData:
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string, since=2)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)
    high_watermark: int = field(int64)
    current_voters: tuple[ReplicaState, ...] = field(array(ReplicaState))
    observers: tuple[ReplicaState, ...] = field(array(ReplicaState))


@entity
class TopicData:
    topic_name: str = field(string)
    partitions: tuple[PartitionData, ...] = field(array(PartitionData))


@entity
class Listener:
    name: str = field(string, since=2)
    host: str = field(string, since=2)
    port: int = field(uint16, since=2)


@entity
class Node:
    node_id: int = field(int32, since=2)
    listeners: tuple[Listener, ...] = field(array(Listener))


@message(api_key=ApiKey.DESCRIBE_QUORUM, versions=range(0, 3), flexible=0)
class DescribeQuorumResponse:
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string, since=2)
    topics: tuple[TopicData, ...] = field(array(TopicData))
    nodes: tuple[Node, ...] = field(array(Node), since=2)
