"""The epoch of each partition that a member holds, so that no two members hold one.

A record that compaction has removed may have moved a partition from one member to another. So a partition may
still be marked with an earlier epoch of its former holder, or not at all. It may never be marked with the
same epoch or a later one.
"""

from __future__ import annotations

from kshim.coordination.groups.consumer.member import Member
from kshim.coordination.groups.consumer.partitions import Held
from schemas.internal_topics.group_metadata_log import TopicId

FREE = -1
"""The epoch of a partition that no member holds."""


class StillOwned(Exception):
    """A record gives a partition to a member while another one holds it in this epoch or a later one."""


class PartitionEpochs:
    """The partitions that members hold or are still to give up, each with its member's epoch."""

    __slots__ = ("_epochs",)

    def __init__(self) -> None:
        self._epochs: dict[TopicId, dict[int, int]] = {}

    def of(self, topic_id: TopicId, partition: int) -> int:
        """The epoch of a partition, or FREE."""
        of_topic = self._epochs.get(topic_id)
        return FREE if of_topic is None else of_topic.get(partition, FREE)

    def change(self, old: Member | None, new: Member | None) -> None:
        """Move the marks of a member to its new epoch and partitions. Raises StillOwned."""
        if old is not None and new is not None and _holds_the_same(old, new):
            return
        if old is not None:
            self._remove(old.assigned, old.epoch)
            self._remove(old.revoking, old.epoch)
        if new is not None:
            self._add(new.assigned, new.epoch)
            self._add(new.revoking, new.epoch)

    def _remove(self, held: Held, epoch: int) -> None:
        for topic_id, partitions in held.items():
            of_topic = self._epochs.get(topic_id)
            if of_topic is None:
                continue
            for partition in partitions:
                if of_topic.get(partition) == epoch:
                    del of_topic[partition]
            if not of_topic:
                del self._epochs[topic_id]

    def _add(self, held: Held, epoch: int) -> None:
        for topic_id, partitions in held.items():
            of_topic = self._epochs.setdefault(topic_id, {})
            for partition in partitions:
                known = of_topic.get(partition)
                if known is not None and known >= epoch:
                    raise StillOwned(
                        f"Cannot set the epoch of {topic_id}-{partition} to {epoch} because the partition is "
                        f"still owned at epoch {known}"
                    )
                of_topic[partition] = epoch


def _holds_the_same(old: Member, new: Member) -> bool:
    return old.epoch == new.epoch and old.assigned == new.assigned and old.revoking == new.revoking
