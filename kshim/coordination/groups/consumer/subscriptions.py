"""Counts what a group's members subscribe to, by name and expression, and the assignors they ask for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from kshim.coordination.groups.consumer.member import Member
from kshim.coordination.groups.consumer.topic_names import MANY, ManyNames, kept_bytes
from kshim.coordination.groups.consumer.topics import Topic, Topics

Watch = Callable[[str | None, bool], None]
"""Called with a topic's name and True when a group begins to subscribe to it, and with False when it stops.
With None instead of a name it stands for any topics: the group has to be asked.
"""

MOST_NAMES_BYTES = 256 * 1024 * 1024
"""How much memory the names of a group's topics may take; a set that several members name counts once."""


class Resolved(NamedTuple):
    """The topics that a regular expression matched."""

    topics: frozenset[str]
    version: int
    """The version of the cluster's topics that were searched."""
    timestamp_ms: int
    """When they were searched."""


NEVER_RESOLVED = Resolved(frozenset(), 0, -1 << 62)


class Subscriptions:
    """The subscriptions of a group's members, counted.

    Sets of many topics are kept as they are, and counted once for all members that have them: what they cost
    does not depend on the number of their topics.
    """

    __slots__ = (
        "_names",
        "_watch",
        "assignors",
        "by_name",
        "by_regex",
        "classic_members",
        "classic_protocols",
        "many",
        "names_bytes",
        "regexes",
        "resolved",
    )

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._names: dict[frozenset[str], tuple[frozenset[str], int]] = {}
        """The different sets of names, each with the object that stands for it and the number of its members.
        """
        self.names_bytes = 0
        """How much memory these sets take; see `kept_bytes`."""
        self.by_name: Counter[str] = Counter()
        """The number of members that name each topic, without those that name many."""
        self.by_regex: Counter[str] = Counter()
        """The number of resolved expressions that match each topic, without those that match many."""
        self.many: Counter[frozenset[str]] = Counter()
        """The sets of many topics, named or matched."""
        self.regexes: Counter[str] = Counter()
        """How many members use each expression."""
        self.resolved: dict[str, Resolved] = {}
        self.assignors: Counter[str] = Counter()
        """How many members ask for each assignor."""
        self.classic_members = 0
        """How many members speak the classic protocol."""
        self.classic_protocols: Counter[str] = Counter()
        """How many of these offer each of their protocols."""

    def change(self, old: Member | None, new: Member | None) -> None:
        """Count a member's subscription as it is now in place of the one that it had."""
        old_names = old.topic_names if old is not None else None
        new_names = new.topic_names if new is not None else None
        if old_names is not new_names:
            self._count_names(new_names, 1)
            self._count_names(old_names, -1)
            self._count(self.by_name, old_names or frozenset(), new_names or frozenset())
        for member, step in ((new, 1), (old, -1)):
            if member is None:
                continue
            if member.regex:
                _step(self.regexes, member.regex, step)
            if member.server_assignor is not None:
                _step(self.assignors, member.server_assignor, step)
            if member.classic is not None:
                self.classic_members += step
                for protocol in member.classic.supported_protocols:
                    _step(self.classic_protocols, protocol.name, step)

    def resolve(self, regex: str, resolved: Resolved | None) -> None:
        """Note what an expression matches, or forget it."""
        old = self.resolved.pop(regex, None)
        old_topics = old.topics if old is not None else frozenset()
        new_topics = resolved.topics if resolved is not None else frozenset()
        if resolved is not None:
            self.resolved[regex] = resolved
        self._count(self.by_regex, old_topics, new_topics)

    def watched(self) -> set[str | None]:
        """All topics for which `watch` was called with True, and not yet with False."""
        return {*self.by_name, *self.by_regex, *((None,) if self.many else ())}

    def same(self, names: frozenset[str]) -> frozenset[str]:
        """The set that the members use which name the same topics, if there are any; else `names`."""
        return self._names.get(names, (names, 0))[0]

    def has_room(self, names: frozenset[str]) -> bool:
        """True if one more member may name these topics: all names together take at most MOST_NAMES_BYTES."""
        return names in self._names or self.names_bytes + kept_bytes(names) <= MOST_NAMES_BYTES

    def latest_large_set(self) -> ManyNames | None:
        """Of the sets of many names that members name, the one that came last."""
        return next((names for names in reversed(self._names) if isinstance(names, ManyNames)), None)

    def existing(self, topics: Topics) -> list[Topic]:
        """The topics that the group subscribes to, as far as they exist, sorted by name."""
        known, found = topics.names(), set[str]()
        for names in (self.by_name.keys(), self.by_regex.keys(), *self.many):
            found.update(common(names, known))
        return [topic for topic in map(topics.named, sorted(found)) if topic is not None]

    def __contains__(self, topic: object) -> bool:
        """True if a member names the topic, or a resolved expression matches it."""
        return self._is_counted(topic) or any(topic in names for names in self.many)

    def subscribes(self, member: Member, topic: str) -> bool:
        """True if a member subscribes to a topic."""
        resolved = self.resolved.get(member.regex) if member.regex else None
        return topic in member.topic_names or (resolved is not None and topic in resolved.topics)

    def is_homogeneous(self, members: int) -> bool:
        """True if all `members` members subscribe to the same topics, as far as Kafka looks."""
        if not self.regexes:
            return len(self._names) <= 1
        one = next(iter(self.regexes.values()))
        return one == members and self._names.keys() <= {frozenset()} and self._are_disjoint()

    def _are_disjoint(self) -> bool:
        """True if no topic is matched by two resolved expressions."""
        matched = [resolved.topics for resolved in self.resolved.values()]
        return len(matched) <= 1 or len(frozenset().union(*matched)) == sum(map(len, matched))

    def last_resolved(self) -> Resolved:
        """Any of the resolved expressions, as all are resolved together; NEVER_RESOLVED if there are none."""
        return next(iter(self.resolved.values()), NEVER_RESOLVED)

    def preferred_assignor(self, configured: Iterable[str]) -> str:
        """The assignor that most members ask for, else the first configured one. In a tie the one that is
        configured first wins.
        """
        names = tuple(configured)
        return max(names, key=lambda name: self.assignors[name])

    def _count_names(self, names: frozenset[str] | None, step: int) -> None:
        if names is None:
            return
        one, members = self._names.get(names, (names, 0))
        if not members:
            self.names_bytes += kept_bytes(one)
        if members + step:
            self._names[one] = one, members + step
        else:
            del self._names[names]
            self.names_bytes -= kept_bytes(one)

    def _count(self, counts: Counter[str], old: frozenset[str], new: frozenset[str]) -> None:
        """Count the topics of one set in place of those of another."""
        for names, step in ((new, 1), (old, -1)):
            if len(names) > MANY:
                had = bool(self.many)
                self.many[names] += step
                if not self.many[names]:
                    del self.many[names]
                if had is not bool(self.many):
                    self._watch(None, not had)
        few_old, few_new = (names if len(names) <= MANY else frozenset[str]() for names in (old, new))
        self._count_each(counts, few_new - few_old, 1)
        self._count_each(counts, few_old - few_new, -1)

    def _count_each(self, counts: Counter[str], topics: Iterable[str], step: int) -> None:
        for topic in topics:
            was = self._is_counted(topic)
            _step(counts, topic, step)
            if was is not self._is_counted(topic):
                self._watch(topic, not was)

    def _is_counted(self, topic: object) -> bool:
        return topic in self.by_name or topic in self.by_regex


def topics_of(member: Member, resolved: Mapping[str, Resolved]) -> frozenset[str]:
    """The names of the topics that a member subscribes to. An unresolved expression matches none."""
    matches = resolved.get(member.regex) if member.regex else None
    return member.topic_names if matches is None else member.topic_names | matches.topics


def common(one: Collection[str], other: Collection[str]) -> Iterable[str]:
    """The names that are in both; the time depends on the shorter one."""
    if len(one) > len(other):
        one, other = other, one
    return filter(other.__contains__, one)


def _step(counts: Counter[str], key: str, step: int) -> None:
    counts[key] += step
    if not counts[key]:
        del counts[key]
