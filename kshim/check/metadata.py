"""Reads the topics in the metadata: which partitions must exist, and which topics contradict each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kshim.check.faults import Fault
from kshim.check.stored import Stored
from kshim.cluster.keys import CLUSTER_ID, NEXT_PARTITION_NO, TOPIC
from kshim.cluster.topics import Topic, decode_topic


class Known(NamedTuple):
    """The topics that the metadata names, and the faults in it."""

    topics: tuple[Topic, ...]
    partitions: Mapping[int, tuple[Topic, int]]
    """Topic and partition index, by partition_no."""
    faults: tuple[Fault, ...]


def known_topics(stored: Stored) -> Known:
    topics: list[Topic] = []
    faults: list[Fault] = []
    for key, value in stored.rows("meta"):
        if bytes(key[: len(TOPIC)]) == TOPIC:
            name = bytes(key[len(TOPIC) :]).decode(errors="replace")
            try:
                topics.append(decode_topic(name, bytes(value)))
            except Exception as error:  # a damaged value can make it raise anything
                faults.append(Fault(f"topic {name}", f"its metadata cannot be read: {error!r}"))
    if topics and not stored.get("meta", CLUSTER_ID):
        faults.append(Fault("metadata", "the cluster has no id"))
    partitions: dict[int, tuple[Topic, int]] = {}
    for topic in topics:
        for partition in topic.partitions:
            place = f"{topic.name}-{partition.index}"
            if (other := partitions.get(partition.partition_no)) is not None:
                faults.append(Fault(place, f"has the records of {other[0].name}-{other[1]}"))
            partitions[partition.partition_no] = topic, partition.index
    following = int(bytes(stored.get("meta", NEXT_PARTITION_NO) or b"0"))
    if partitions and max(partitions) >= following:
        faults.append(Fault("metadata", f"partition number {following} would be given out twice"))
    return Known(tuple(topics), partitions, tuple(faults))
