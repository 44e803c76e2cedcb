"""A change of topics that is made as a whole, and the leaders that move with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kshim.cluster.checks import Refusal
from kshim.cluster.topics import Partition, Topic

TopicPartition = tuple[str, int]
Outcome = Sequence[tuple[TopicPartition, Refusal | None]]
"""For each partition that was asked for, in that order: a refusal, or None for success."""


class Change(NamedTuple):
    """A decision about topics, to be made durable."""

    topics: Mapping[str, Topic]
    """The topics that change, as they are afterwards, by name."""
    outcome: Outcome
    running: tuple[int, ...] | None = None
    """The brokers that run afterwards; None if these do not change."""


class Move(NamedTuple):
    """A partition whose leader or leader epoch has changed, before and after."""

    topic: Topic
    before: Partition
    after: Partition


def moves(before: Topic, after: Topic) -> list[Move]:
    """The partitions whose leader or leader epoch has changed."""
    return [
        Move(after, old, new)
        for old, new in zip(before.partitions, after.partitions, strict=False)
        if (old.leader, old.leader_epoch) != (new.leader, new.leader_epoch)
    ]
