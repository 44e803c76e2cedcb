"""What changes together: topics as they shall be, and which leaders move with that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kshim.cluster.checks import Refusal
from kshim.cluster.topics import Partition, Topic

TopicPartition = tuple[str, int]
Outcome = Sequence[tuple[TopicPartition, Refusal | None]]
"""A refusal, or None for success, of each partition that was asked for, in that order."""


class Change(NamedTuple):
    """topics: those that change, as they shall be. running: the brokers, None where these stay."""

    topics: Mapping[str, Topic]
    outcome: Outcome
    running: tuple[int, ...] | None = None


class Move(NamedTuple):
    """A partition that has got another leader or leader epoch, as it was and as it is."""

    topic: Topic
    before: Partition
    after: Partition


def moves(before: Topic, after: Topic) -> list[Move]:
    """The partitions that have got another leader or leader epoch."""
    return [
        Move(after, old, new)
        for old, new in zip(before.partitions, after.partitions, strict=False)
        if (old.leader, old.leader_epoch) != (new.leader, new.leader_epoch)
    ]
