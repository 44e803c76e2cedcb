"""All consumer groups of one shard, and which of them subscribe to a topic."""

from __future__ import annotations

from collections.abc import Set
from functools import partial

from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.partition_epochs import StillOwned
from kshim.coordination.groups.consumer.replaying import OutOfOrder, replay
from schemas.internal_topics.consumer_group_log import ConsumerGroupKey, ConsumerGroupValue
from schemas.message import MalformedMessage


class ConsumerGroups:
    """The groups by their ids; changed by replaying records alone."""

    __slots__ = ("_by_topic", "groups", "with_expressions")

    def __init__(self) -> None:
        self.groups: dict[str, ConsumerGroup] = {}
        self._by_topic: dict[str | None, set[str]] = {}
        """Group ids by topic; under None those of groups that subscribe to many topics at once."""
        self.with_expressions: set[str] = set()
        """The ids of the groups that subscribe by regular expression."""

    def new_group(self, group_id: str) -> ConsumerGroup:
        """A group that exists as soon as its first record is applied."""
        return ConsumerGroup(group_id, partial(self._watch, group_id))

    def apply(self, group: ConsumerGroup, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> None:
        """Apply a record of a group. A new group now exists, and a deleted one does not."""
        if replay(group, key, value):
            self.groups[group.group_id] = group
        else:
            del self.groups[group.group_id]
        if group.subscriptions.regexes:
            self.with_expressions.add(group.group_id)
        else:
            self.with_expressions.discard(group.group_id)

    def load(self, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> None:
        """Apply a stored record. A tombstone for a group that does not exist changes nothing.

        Raises MalformedMessage if the record cannot follow those before it.
        """
        group = self.groups.get(key.group)
        if group is None:
            if value is None:
                return
            group = self.new_group(key.group)
        try:
            self.apply(group, key, value)
        except (OutOfOrder, StillOwned) as fault:
            raise MalformedMessage(str(fault), api=type(key).__name__, version=0) from fault

    def discard(self, group_id: str) -> None:
        """Forget a group, if it exists: a classic group has taken its place."""
        group = self.groups.pop(group_id, None)
        self.with_expressions.discard(group_id)
        if group is not None:
            for topic in group.subscriptions.watched():
                self._watch(group_id, topic, False)

    def topics(self) -> Set[str]:
        """The topics that groups subscribe to."""
        found = {topic for topic in self._by_topic if topic is not None}
        for group_id in self._by_topic.get(None, ()):
            found.update(*self.groups[group_id].subscriptions.many)
        return found

    def subscribed_to(self, topic: str) -> list[str]:
        """The ids of the groups that subscribe to a topic, in the order of the ids."""
        of_many = {
            group_id
            for group_id in self._by_topic.get(None, ())
            if topic in self.groups[group_id].subscriptions
        }
        return sorted(of_many | self._by_topic.get(topic, set()))

    def _watch(self, group_id: str, topic: str | None, is_subscribed: bool) -> None:
        if is_subscribed:
            self._by_topic.setdefault(topic, set()).add(group_id)
            return
        of_topic = self._by_topic[topic]
        of_topic.discard(group_id)
        if not of_topic:
            del self._by_topic[topic]
