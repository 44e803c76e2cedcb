"""Sets of partitions by topic id: what members are to have, and what they have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from schemas.internal_topics.consumer_group_log import TopicPartition, TopicPartitions
from schemas.internal_topics.group_metadata_log import TopicId
from schemas.mapped import Mapped

Assignment = Mapping[TopicId, frozenset[int]]
"""Partitions by topic id. No topic has an empty set. Nobody changes an assignment once it is made."""
Held = Mapping[TopicId, Mapping[int, int]]
"""Partitions by topic id, each with the epoch in which its member got it. Nobody changes it once it is made.
"""

NOTHING: Assignment = MappingProxyType({})
HOLDS_NOTHING: Held = MappingProxyType({})


def size(partitions: Assignment | Held) -> int:
    """How many partitions there are, of all topics."""
    return sum(map(len, partitions.values()))


def without_epochs(held: Held) -> Assignment:
    """The partitions alone."""
    return {topic_id: frozenset(partitions) for topic_id, partitions in held.items()}


def joined(one: Held, other: Held) -> Held:
    """The partitions of both."""
    both = {topic_id: dict(partitions) for topic_id, partitions in one.items()}
    for topic_id, partitions in other.items():
        both.setdefault(topic_id, {}).update(partitions)
    return both


class InTarget(Mapped[TopicPartition]):
    """An assignment as the record of a target holds it. The parts are made while the record is written."""

    __slots__ = ("assignment",)

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(_in_target, tuple(assignment.items()))
        self.assignment = assignment


def _in_target(of_topic: tuple[TopicId, frozenset[int]]) -> TopicPartition:
    topic_id, partitions = of_topic
    return TopicPartition(topic_id=topic_id, partitions=tuple(sorted(partitions)))


def from_target(stored: Iterable[TopicPartition]) -> Assignment:
    """The assignment in the record of a target."""
    if isinstance(stored, InTarget):
        return stored.assignment
    return {each.topic_id: frozenset(each.partitions) for each in stored}


def to_current(held: Held) -> tuple[TopicPartitions, ...]:
    """Partitions as the record of a member's current assignment holds them."""
    found = []
    for topic_id, epochs in held.items():
        partitions = tuple(sorted(epochs))
        found.append(
            TopicPartitions(
                topic_id=topic_id,
                partitions=partitions,
                assignment_epochs=tuple(epochs[partition] for partition in partitions),
            )
        )
    return tuple(found)


def from_current(stored: Iterable[TopicPartitions], member_epoch: int) -> Held:
    """The partitions in the record of a member's current assignment.

    member_epoch: the epoch of partitions whose own epoch is not stored, as in records from before Kafka 4.3.
    """
    held: dict[TopicId, dict[int, int]] = {}
    for each in stored:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            epochs = (max(member_epoch, 0),) * len(each.partitions)
        held[each.topic_id] = dict(zip(each.partitions, epochs, strict=True))
    return held
