"""The uniform assignor for members that subscribe to different topics.

Members keep what they have; the rest goes to the least loaded subscribers. Then partitions move, topic by
topic, from the most to the least loaded subscribers, until no two of a topic differ by more than one or 16
rounds are over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kshim.coordination.groups.consumer.assignors.spec import AssignorFailed, GroupSpec, InSteps, subscribers
from kshim.coordination.groups.consumer.partitions import Assignment
from kshim.coordination.java import in_order_of_a_hash_map
from schemas.internal_topics.group_metadata_log import TopicId

MOST_ROUNDS = 16
_NOBODY = -1


def assign_unlike(group: GroupSpec) -> InSteps[dict[str, Assignment]]:
    """Assign partitions to members with different subscriptions, by the rules above."""
    member_ids = in_order_of_a_hash_map(group.members, group.code_of)
    found = yield from subscribers([group.members[each].topic_ids for each in member_ids])
    if not found:
        return {}
    work = _Work(group, member_ids, found)
    yield from work.keep()
    yield from work.assign_the_rest()
    yield from work.balance()
    return (yield from work.target())


class _Levels:
    """The subscribers of one topic, sorted by how many partitions they have.

    `least_loaded` and `most_loaded` name the next member to get and to lose a partition. Each walks through a
    range of members that are on one level, and goes on to the next level once all of them had their turn.
    """

    def __init__(self, members: Sequence[int], loads: list[int]) -> None:
        """members: their numbers, the lowest first."""
        self._loads = loads
        self._members = sorted(members, key=loads.__getitem__)
        self._low = loads[self._members[0]] - 1
        self._low_end = self._next_low = 0
        self._high = loads[self._members[-1]] + 1
        self._high_start = self._high_end = len(self._members)
        self._next_high = len(self._members) - 1

    def is_balanced(self) -> bool:
        """True if the two levels differ by at most one."""
        return self._high - self._low <= 1

    def least_loaded(self) -> int:
        """The next member to get a partition."""
        if self._next_low >= self._low_end:
            self._low += 1
            while self._low_end < len(self._members) and self._load_at(self._low_end) == self._low:
                self._low_end += 1
            self._next_low = 0
        member = self._members[self._next_low]
        self._next_low += 1
        return member

    def most_loaded(self) -> int | None:
        """The next member to lose a partition; None if there is none left."""
        if self._next_high < self._high_start:
            if self._high_end <= self._high_start and self._high_start > 0:
                self._high = self._load_at(self._high_start - 1)
            else:
                self._high -= 1
            while self._high_start > 0 and self._load_at(self._high_start - 1) == self._high:
                self._high_start -= 1
            self._next_high = self._high_end - 1
        if self._next_high < 0:
            return None
        member = self._members[self._next_high]
        self._next_high -= 1
        return member

    def exclude_most_loaded(self) -> None:
        """Leave out the member that `most_loaded` returned last."""
        at, end = self._next_high + 1, self._high_end - 1
        self._members[at], self._members[end] = self._members[end], self._members[at]
        self._high_end -= 1

    def _load_at(self, place: int) -> int:
        return self._loads[self._members[place]]


class _Work:
    """An assignment in the making. Members are numbers, in the order in which Kafka numbers them."""

    def __init__(
        self, group: GroupSpec, member_ids: Sequence[str], subscribers: Mapping[TopicId, Sequence[int]]
    ) -> None:
        """subscribers: see `spec.subscribers`."""
        self._group = group
        self._member_ids = member_ids
        self._loads = [0] * len(member_ids)
        self._subscribers = subscribers
        for topic_id in subscribers:
            if topic_id not in group.partitions:
                raise AssignorFailed(
                    f"Members are subscribed to topic {topic_id} which doesn't exist in the topic metadata."
                )
        self._owners = {topic_id: [_NOBODY] * group.partitions[topic_id] for topic_id in subscribers}

    def keep(self) -> InSteps[None]:
        """Leave to each member what it had of the topics that it still subscribes to.

        A classic leader may have assigned partitions that do not exist; they are left out.
        """
        for number, member_id in enumerate(self._member_ids):
            member = self._group.members[member_id]
            for topic_id, partitions in member.target.items():
                if topic_id in member.topic_ids:
                    owners = self._owners[topic_id]
                    for partition in partitions:
                        if partition < len(owners):
                            self._loads[number] += 1
                            owners[partition] = number
                    yield len(partitions)

    def assign_the_rest(self) -> InSteps[None]:
        """Give the partitions that nobody has to the least loaded subscribers of their topics."""
        for topic_id in self._sorted(self._subscribers):
            subscribers = self._subscribers[topic_id]
            unowned = [
                partition for partition, owner in enumerate(self._owners[topic_id]) if owner == _NOBODY
            ]
            if unowned:
                levels = _Levels(subscribers, self._loads)
                for partition in unowned:
                    self._give(topic_id, partition, levels.least_loaded())
                yield len(subscribers)
            yield len(self._owners[topic_id])

    def balance(self) -> InSteps[None]:
        """Move partitions until a round has moved none, or MOST_ROUNDS rounds are over."""
        shared = self._sorted(topic_id for topic_id, those in self._subscribers.items() if len(those) >= 2)
        last_moved = None
        for _ in range(MOST_ROUNDS):
            for place, topic_id in enumerate(shared):
                if place == last_moved:
                    return
                if self._balance_topic(topic_id) or last_moved is None:
                    last_moved = place
                yield len(self._subscribers[topic_id]) + len(self._owners[topic_id])

    def target(self) -> InSteps[dict[str, Assignment]]:
        """The finished assignment."""
        found: list[dict[TopicId, set[int]]] = [{} for _ in self._member_ids]
        for topic_id, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                if owner != _NOBODY:
                    found[owner].setdefault(topic_id, set()).add(partition)
            yield len(owners)
        return {
            member_id: {topic_id: frozenset(partitions) for topic_id, partitions in found[number].items()}
            for number, member_id in enumerate(self._member_ids)
        }

    def _balance_topic(self, topic_id: TopicId) -> bool:
        """Move partitions of one topic from its most to its least loaded subscribers; return True if one was
        moved.
        """
        subscribers = self._subscribers[topic_id]
        loads = list(map(self._loads.__getitem__, subscribers))
        if max(loads) - min(loads) <= 1:
            return False
        levels = _Levels(subscribers, self._loads)
        owned: defaultdict[int, list[int]] = defaultdict(list)
        for partition, owner in enumerate(self._owners[topic_id]):
            owned[owner].append(partition)
        has_moved = False
        while not levels.is_balanced():
            giver = levels.most_loaded()
            while giver is not None and not owned.get(giver):
                levels.exclude_most_loaded()
                giver = levels.most_loaded()
            if giver is None:
                break
            partition = owned[giver].pop()
            taker = levels.least_loaded()
            if levels.is_balanced():
                break
            self._give(topic_id, partition, taker)
            has_moved = True
        return has_moved

    def _give(self, topic_id: TopicId, partition: int, member: int) -> None:
        owner = self._owners[topic_id][partition]
        if owner != _NOBODY:
            self._loads[owner] -= 1
        self._owners[topic_id][partition] = member
        self._loads[member] += 1

    def _sorted(self, topic_ids: Iterable[TopicId]) -> list[TopicId]:
        """Topics with the most partitions for each subscriber first, then those with few subscribers, then by
        id as Java compares them.
        """

        def place(topic_id: TopicId) -> tuple[float, int, int, int]:
            subscribers = len(self._subscribers[topic_id])
            high, low = _signed(topic_id.int >> 64), _signed(topic_id.int & 0xFFFFFFFF_FFFFFFFF)
            return -self._group.partitions[topic_id] / subscribers, subscribers, high, low

        return sorted(topic_ids, key=place)


def _signed(number: int) -> int:
    return number - (number >> 63 << 64)
