"""AlterReplicaLogDirs (34): move replicas to other directories of their broker (KIP-113).

A broker of kshim has one directory, so its replicas can be moved only to the directory that they are in.
"""

from __future__ import annotations

from functools import partial

from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster import Partition
from kshim.turns.slices import in_slices
from schemas.error_code import ErrorCode
from schemas.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

PARTITION_US = 5
LONGEST_DIRECTORY = 255
"""Most characters of a directory's name. While Kafka moves a replica, the name has a suffix of 40 characters.
"""
SUFFIX_CHARACTERS = len(".-future") + 32

Wanted = tuple[str, int, str]


async def alter_replica_log_dirs(
    broker: ClusterView, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Answer once for each replica.

    If the request names two directories for a replica, the last one counts.
    """
    paths = {
        (topic.name, index): each.path
        for each in request.dirs
        for topic in each.topics
        for index in topic.partitions
    }
    wanted = [(name, index, path) for (name, index), path in paths.items()]

    find = partial(_error, broker)
    errors = await in_slices(broker.rounds, context.turn, wanted, find, lambda _: PARTITION_US)
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (name, index, _), error in zip(wanted, errors, strict=True):
        result = AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error)
        results.setdefault(name, []).append(result)
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(partitions))
            for name, partitions in results.items()
        )
    )


def _error(broker: ClusterView, wanted: Wanted) -> ErrorCode:
    """NONE if the replica is in the wanted directory already, else an error."""
    name, index, path = wanted
    if len(f"{name}-{index}") + SUFFIX_CHARACTERS > LONGEST_DIRECTORY:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path != broker.config.log_dir:
        return ErrorCode.LOG_DIR_NOT_FOUND
    topic = broker.cluster.topics.get(name)
    partition: Partition | None = None if topic is None else topic.partition(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker.node_id in partition.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER
