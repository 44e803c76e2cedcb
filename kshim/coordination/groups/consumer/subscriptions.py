"""Counts what a group's members subscribe to, by name and expression, and the assignors they ask for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from kshim.coordination.groups.consumer.member import Member


class Resolved(NamedTuple):
    """The topics that a regular expression matched."""

    topics: frozenset[str]
    version: int
    """The version of the cluster's topics that were searched."""
    timestamp_ms: int
    """When they were searched."""


NEVER_RESOLVED = Resolved(frozenset(), 0, -1 << 62)


class Subscriptions:
    """The subscriptions of a group's members, counted."""

    __slots__ = (
        "_watch",
        "assignors",
        "by_name",
        "by_regex",
        "classic_members",
        "classic_protocols",
        "regexes",
        "resolved",
    )

    def __init__(self, watch: Callable[[str, bool], None]) -> None:
        """watch: called with a topic's name and True when the group begins to subscribe to it, and with False
        when it stops.
        """
        self._watch = watch
        self.by_name: Counter[str] = Counter()
        """How many members name each topic."""
        self.by_regex: Counter[str] = Counter()
        """How many resolved expressions match each topic."""
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
        old_names = old.topic_names if old is not None else frozenset()
        new_names = new.topic_names if new is not None else frozenset()
        if old_names != new_names:
            self._count(self.by_name, new_names - old_names, 1)
            self._count(self.by_name, old_names - new_names, -1)
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
        self._count(self.by_regex, new_topics - old_topics, 1)
        self._count(self.by_regex, old_topics - new_topics, -1)

    def topics(self) -> set[str]:
        """The names of all topics that the group subscribes to."""
        return {*self.by_name, *self.by_regex}

    def is_subscribed_to(self, topic: str) -> bool:
        """True if a member names the topic, or a resolved expression matches it."""
        return topic in self.by_name or topic in self.by_regex

    def topics_of(self, member: Member) -> frozenset[str]:
        """The names of the topics that a member subscribes to. An unresolved expression matches none."""
        resolved = self.resolved.get(member.regex) if member.regex else None
        return member.topic_names if resolved is None else member.topic_names | resolved.topics

    def is_homogeneous(self, members: int) -> bool:
        """True if all `members` members subscribe to the same topics, as far as Kafka looks."""
        if not self.regexes:
            return all(count == members for count in self.by_name.values())
        one = next(iter(self.regexes.values()))
        return one == members and not self.by_name and all(count == 1 for count in self.by_regex.values())

    def last_resolved(self) -> Resolved:
        """Any of the resolved expressions, as all are resolved together; NEVER_RESOLVED if there are none."""
        return next(iter(self.resolved.values()), NEVER_RESOLVED)

    def preferred_assignor(self, configured: Iterable[str]) -> str:
        """The assignor that most members ask for, else the first configured one. In a tie the one that is
        configured first wins.
        """
        names = tuple(configured)
        return max(names, key=lambda name: self.assignors[name])

    def _count(self, counts: Counter[str], topics: Iterable[str], step: int) -> None:
        for topic in topics:
            was = self.is_subscribed_to(topic)
            _step(counts, topic, step)
            if was is not self.is_subscribed_to(topic):
                self._watch(topic, not was)


def _step(counts: Counter[str], key: str, step: int) -> None:
    counts[key] += step
    if not counts[key]:
        del counts[key]
