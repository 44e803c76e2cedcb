"""Asks for the offsets of partitions: the first, the next, and the first at or after a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kshim.client.cluster import NO_LEADER, Cluster, Retry, Topic, retry_or_check
from kshim.client.faults import ClientError
from schemas.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

LATEST: Final = -1
EARLIEST: Final = -2
NO_OFFSET: Final = -1


def offsets(
    cluster: Cluster, topic: Topic, partitions: Iterable[int], timestamp: int, *, committed_only: bool = False
) -> dict[int, int]:
    """The offset of each partition. Raises ClientError.

    timestamp: LATEST, EARLIEST, or ms since 1970; NO_OFFSET is returned if all records are older.
    committed_only: LATEST is the last stable offset, where no transaction is open.
    """
    found: dict[int, int] = {}
    left = set(partitions)
    known: Topic | None = topic

    def ask() -> None:
        nonlocal known
        known = cluster.led_topic(topic.name) if known is None else known
        asked, known = known, None
        for leader, some in led(asked, left).items():
            found.update(_ask_leader(cluster, leader, topic.name, some, timestamp, committed_only))
            left.difference_update(some)

    cluster.until_done(ask)
    return found


def _ask_leader(
    cluster: Cluster, leader: int, name: str, partitions: list[int], timestamp: int, committed_only: bool
) -> dict[int, int]:
    asked = tuple(ListOffsetsPartition(partition_index=each, timestamp=timestamp) for each in partitions)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(committed_only),
        topics=(ListOffsetsTopic(name=name, partitions=asked),),
        timeout_ms=int(cluster.settings.timeout_s * 1000),
    )
    response = cluster.ask(cluster.node(leader), request)
    for answered in response.topics[0].partitions:
        retry_or_check(f"offsets of {name}-{answered.partition_index}", answered.error_code)
    return {each.partition_index: each.offset for each in response.topics[0].partitions}


def led(topic: Topic, partitions: Iterable[int]) -> Mapping[int, list[int]]:
    """The partitions by the node id of their leader. Raises Retry if one has none."""
    found: dict[int, list[int]] = {}
    for index in sorted(partitions):
        leader = topic.partitions[index].leader
        if leader == NO_LEADER:
            raise Retry(ClientError(f"no running broker leads {topic.name}-{index}"))
        found.setdefault(leader, []).append(index)
    return found
