"""AlterReplicaLogDirs (34): move replicas to other directories of their broker (KIP-113).

v2 flexible. Kafka 4.0 removed v0.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int16, int32, string


@entity
class AlterReplicaLogDirTopic:
    name: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


@entity
class AlterReplicaLogDir:
    path: str = field(string)
    topics: tuple[AlterReplicaLogDirTopic, ...] = field(array(AlterReplicaLogDirTopic))


@message(api_key=ApiKey.ALTER_REPLICA_LOG_DIRS, versions=range(1, 3), flexible=2)
class AlterReplicaLogDirsRequest:
    dirs: tuple[AlterReplicaLogDir, ...] = field(array(AlterReplicaLogDir))


@entity
class AlterReplicaLogDirPartitionResult:
    partition_index: int = field(int32)
    error_code: int = field(int16)


@entity
class AlterReplicaLogDirTopicResult:
    topic_name: str = field(string)
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...] = field(
        array(AlterReplicaLogDirPartitionResult)
    )


@message(api_key=ApiKey.ALTER_REPLICA_LOG_DIRS, versions=range(1, 3), flexible=2)
class AlterReplicaLogDirsResponse:
    throttle_time_ms: int = field(int32)
    results: tuple[AlterReplicaLogDirTopicResult, ...] = field(array(AlterReplicaLogDirTopicResult))
