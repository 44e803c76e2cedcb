"""DescribeLogDirs (35): the partitions in this broker's only directory, and their sizes (KIP-113).

v4: the size of the disk (KIP-827). v5: whether the directory takes no new replicas (KIP-1066).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from kshim.answering.views import LogView
from kshim.callers import RequestContext
from kshim.cluster import Partition
from kshim.configs.config import Config
from schemas.error_code import ErrorCode
from schemas.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

UNKNOWN_BYTES = -1


async def describe_log_dirs(
    broker: LogView, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Describe all partitions with a replica on this broker, or the named ones among them.

    A log may be long, so other requests are answered while its bytes are counted.
    """
    topics: list[DescribeLogDirsTopic] = []
    for name, partitions in _wanted(broker, request).items():
        described: list[DescribeLogDirsPartition] = []
        for partition in partitions:
            size = await _size_bytes(broker, partition.partition_no)
            described.append(DescribeLogDirsPartition(partition_index=partition.index, partition_size=size))
        topics.append(DescribeLogDirsTopic(name=name, partitions=tuple(described)))
    total_bytes, usable_bytes = _disk_bytes(broker.config)
    result = DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=broker.config.log_dir,
        topics=tuple(topics),
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
        is_cordoned=broker.node_id in broker.cluster.cordoned,
    )
    return DescribeLogDirsResponse(error_code=ErrorCode.NONE, results=(result,))


def _wanted(broker: LogView, request: DescribeLogDirsRequest) -> dict[str, list[Partition]]:
    """The partitions to describe, by topic, each once. A null request asks for all. Partitions without a
    replica on this broker are left out.
    """
    topics = broker.cluster.topics
    if request.topics is None:
        asked: Iterable[tuple[str, Iterable[int]]] = (
            (name, range(len(topic.partitions))) for name, topic in topics.items()
        )
    else:
        asked = ((each.topic, each.partitions) for each in request.topics)
    wanted: dict[str, dict[int, Partition]] = {}
    for name, indexes in asked:
        for index in indexes:
            partition = topics[name].partition(index) if name in topics else None
            if partition is not None and broker.node_id in partition.replicas:
                wanted.setdefault(name, {})[index] = partition
    return {name: list(partitions.values()) for name, partitions in wanted.items()}


async def _size_bytes(broker: LogView, partition_no: int) -> int:
    size, offset = 0, broker.log.offsets(partition_no).log_start_offset
    while sizes := broker.log.sizes(partition_no, offset):
        size += sum(bytes_ for _, bytes_ in sizes)
        offset = sizes[-1][0] + 1
        await broker.rounds.next()
    return size


def _disk_bytes(config: Config) -> tuple[int, int]:
    """The size of the disk, and the free bytes on it."""
    if config.in_memory:
        return UNKNOWN_BYTES, UNKNOWN_BYTES
    usage = shutil.disk_usage(config.log_dirs)
    return usage.total, usage.free
