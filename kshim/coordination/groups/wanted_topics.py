"""Names consumer groups, and the topics that they need, for a cluster that has to be asked about both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import NamedTuple

from kshim.coordination.groups.consumer.upgrade import topics_of
from kshim.coordination.groups.shard import Shard
from schemas.internal_topics.group_metadata_log import TopicId


class WantedByShard(NamedTuple):
    """The consumer groups of one shard, and the topics that they need."""

    group_ids: Sequence[str]
    names: Set[str]
    """The topics that members subscribe to."""
    held: Mapping[TopicId, int]
    """The highest partition that members have, or are to have, by topic id."""
    has_regexes: bool
    """True if members subscribe by regular expression."""


class WantedTopics:
    """The topics that the consumer groups of a coordinator need."""

    def __init__(self, shards: Mapping[int, Shard], shard_for: Callable[[str], int]) -> None:
        """shards: those that are led, or are loading. shard_for: returns the shard of a group."""
        self._shards = shards
        self._shard_for = shard_for

    def by_shard(self, number: int) -> WantedByShard:
        """The topics that a shard needs that is led, or is loading. O(members)."""
        store = self._shards[number].hard_state.consumer
        held: dict[TopicId, int] = {}
        for group in store.groups.values():
            members = group.members.values()
            have = chain.from_iterable((member.assigned, member.revoking) for member in members)
            for partitions in chain(have, group.targets.values()):
                for topic_id, of_topic in partitions.items():
                    held[topic_id] = max((held.get(topic_id, 0), *of_topic))
        has_regexes = any(group.subscriptions.regexes for group in store.groups.values())
        return WantedByShard(tuple(store.groups), set(store.topics()), held, has_regexes)

    def names(self) -> set[str]:
        """All topics that members subscribe to."""
        return {name for shard in self._served() for name in shard.hard_state.consumer.topics()}

    def is_wanted(self, topic: str) -> bool:
        """True if a member subscribes to a topic."""
        return any(shard.hard_state.consumer.subscribed_to(topic) for shard in self._served())

    def has_regexes(self) -> bool:
        """True if a member subscribes by regular expression. O(groups)."""
        return any(
            group.subscriptions.regexes
            for shard in self._served()
            for group in shard.consumer.groups.values()
        )

    def group_ids(self) -> Iterator[str]:
        """All consumer groups."""
        return (group_id for shard in self._served() for group_id in shard.consumer.groups)

    def is_consumer_group(self, group_id: str) -> bool:
        """True if there is a consumer group with that id."""
        shard = self._shards.get(self._shard_for(group_id))
        return shard is not None and group_id in shard.consumer.groups

    def of_classic(self, group_id: str) -> set[str]:
        """The topics that the members of a classic group subscribe to and have; empty for any other group."""
        shard = self._shards.get(self._shard_for(group_id))
        classic = None if shard is None else shard.groups.get(group_id)
        return set() if classic is None else topics_of(classic)

    def _served(self) -> Iterator[Shard]:
        return (shard for shard in self._shards.values() if not shard.is_loading)
