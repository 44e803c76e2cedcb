"""ElectLeaders (43): elect the leaders of partitions (KIP-183).

v1 election_type and a top-level error_code (KIP-460); v2 flexible. Null topic_partitions stand for all.
election_type: 0 preferred, 1 unclean.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int8, int16, int32, nullable_array, nullable_string, string


@entity
class TopicPartitions:
    topic: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


@message(api_key=ApiKey.ELECT_LEADERS, versions=range(0, 3), flexible=2)
class ElectLeadersRequest:
    election_type: int = field(int8, since=1)
    topic_partitions: tuple[TopicPartitions, ...] | None = field(nullable_array(TopicPartitions))
    timeout_ms: int = field(int32, default=60000)


@entity
class PartitionResult:
    partition_id: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)


@entity
class ReplicaElectionResult:
    topic: str = field(string)
    partition_result: tuple[PartitionResult, ...] = field(array(PartitionResult))


@message(api_key=ApiKey.ELECT_LEADERS, versions=range(0, 3), flexible=2)
class ElectLeadersResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, since=1)
    replica_election_results: tuple[ReplicaElectionResult, ...] = field(array(ReplicaElectionResult))
