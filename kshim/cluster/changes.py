"""A change of several topics, made all at once, and the partitions whose leader it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kshim.cluster.checks import Refusal
from kshim.cluster.topics import Partition, Topic

TopicPartition = tuple[str, int]
Outcome = Sequence[tuple[TopicPartition, Refusal | None]]
"""A refusal, or None for success, for each requested partition, in the order of the request."""


class Change(NamedTuple):
    """New values of topics, not durable yet."""

    topics: Mapping[str, Topic]
    """The changed topics in their new state, by name."""
    outcome: Outcome
    running: tuple[int, ...] | None = None
    """The brokers that run after the change; None if the change does not concern them."""


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
