"""Plays the history of a seed on both servers, and compares each answer.

All members ask for the range assignor: the uniform one goes by topic ids, which differ from server to server.
After a member has left, another one sends a heartbeat: there Apache Kafka computes the target.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from integration.differential.members.side import Partitions, Said, Side

TOPICS = {"members-a": 3, "members-b": 4, "members-c": 1}
CLASSIC = ("c1", "c2")
STARTS_ANEW = {25, 82, 110}


class History:
    """One group, and what its members know."""

    def __init__(self, seed: int, sides: tuple[Side, Side]) -> None:
        self._random = random.Random(seed)
        self._sides = sides
        self._group = f"members-{seed}"
        self._epochs = dict.fromkeys(("m0", "m1", "m2", "m3"), 0)
        self._owned: dict[str, Partitions] = {}
        self._static_there: set[str] = set()
        self._topics: dict[str, tuple[str, ...]] = {}
        self._is_mixed = self._random.random() < 0.5
        self._begins_classic = self._is_mixed and self._random.random() < 0.5
        self._instances = {"m2": "i1", "m3": self._random.choice(("i1", "i2"))}
        if self._begins_classic or self._random.random() < 0.3:
            self._instances["c1"] = "j1"
        self._log: list[tuple[object, Said]] = []
        for side in sides:
            side.member_ids = {each: each for each in CLASSIC if each not in self._instances}
            side.generations, side.owned = {}, {}

    def play(self) -> int:
        """Return how many answers were compared."""
        if self._begins_classic:
            topics = self._some_topics(1)
            self._join("c1", topics, {})
            self._sync("c1", {topic: range(TOPICS[topic]) for topic in topics})
        for _ in range(self._random.randint(6, 30)):
            if not self._step():
                break
        return len(self._log)

    def _step(self) -> bool:
        """Do one step; return False if the servers answer differently on purpose."""
        there = [each for each, epoch in self._epochs.items() if epoch > 0]
        member, chance = self._random.choice(list(self._epochs)), self._random.random()
        if not there or (self._epochs[member] <= 0 and chance < 0.5) or chance < 0.05:
            return self._enter(member)
        if self._is_mixed and chance < 0.4:
            self._classic_step(self._random.choice(CLASSIC))
        elif chance < 0.9:
            self._consumer_step(member)
        elif len(there) > 1 and member in there:
            self._beat(member, -1, None)
            other = next(each for each in there if each != member)
            self._beat(other, self._epochs[other], None)
        return True

    def _enter(self, member: str) -> bool:
        """A member joins. Return False if it is a static one that is there: only kshim takes it."""
        if member in self._static_there:
            return False
        fields = {"rebalance_timeout_ms": 60_000, "instance_id": self._instances.get(member)}
        topics = self._some_topics(0)
        self._beat(member, 0, {}, subscribed_topic_names=topics, server_assignor="range", **fields)
        return True

    def _consumer_step(self, member: str) -> None:
        epoch, chance = max(self._epochs[member], 1), self._random.random()
        owned = self._owned.get(member, {})
        static = {"instance_id": self._instances.get(member)} if self._random.random() < 0.6 else {}
        if chance < 0.25:
            self._beat(member, epoch, None, **static)
        elif chance < 0.55:
            self._beat(member, epoch, owned)
        elif chance < 0.65:
            names = self._some_topics(0)
            self._beat(
                member, epoch, owned, rebalance_timeout_ms=60_000, subscribed_topic_names=names, **static
            )
        elif chance < 0.75:
            self._beat(member, epoch, None, subscribed_topic_names=self._some_topics(0))
        elif chance < 0.82:
            wrong = max(epoch + self._random.choice((1, -1, 90)), 1)
            self._beat(member, wrong, {} if self._random.random() < 0.5 else None, **static)
        elif chance < 0.88 and member in self._instances:
            self._beat(member, -2, None, instance_id=self._instances[member])
        else:
            self._commit(member, epoch + self._random.choice((0, 0, -1, 1)))

    def _classic_step(self, member: str) -> None:
        chance = self._random.random()
        late = int(self._random.random() < 0.1)
        if chance < 0.4:
            topics = self._topics.get(member) if self._random.random() < 0.7 else None
            owned = self._sides[0].owned.get(member, {}) if self._random.random() < 0.6 else {}
            self._join(member, topics or self._some_topics(1), owned)
        elif chance < 0.7:
            self._sync(member, None, late)
        else:
            fields = {"group_instance_id": self._instances.get(member)}
            self._both(
                ("beats", member, late), lambda side: side.beat(member, late, group_id=self._group, **fields)
            )

    def _join(self, member: str, topics: tuple[str, ...], owned: Partitions) -> None:
        self._topics[member] = topics
        fields = {"group_id": self._group, "group_instance_id": self._instances.get(member)}
        version = 5 if member in self._instances else 3
        what = "joins", member, topics, owned
        self._both(what, lambda side: side.join(member, version, topics, owned, **fields))

    def _sync(self, member: str, assigned: Partitions | None, late: int = 0) -> None:
        fields = {"group_id": self._group, "group_instance_id": self._instances.get(member)}
        self._both(("syncs", member, late), lambda side: side.sync(member, assigned, late, **fields))

    def _commit(self, member: str, epoch: int) -> None:
        topic = self._random.choice(list(TOPICS))
        index = self._random.randrange(TOPICS[topic])
        fields = {"group_id": self._group, "member_id": member, "generation_id_or_member_epoch": epoch}
        self._both(("commits", member, epoch, topic), lambda side: side.commit(topic, index, **fields))

    def _beat(self, member: str, epoch: int, owned: Partitions | None, **fields: Any) -> None:
        given = {"group_id": self._group, "member_id": member, "member_epoch": epoch, **fields}
        error, _, now, _, has = self._both((given, owned), lambda side: side.heartbeat(owned, **given))
        if error in STARTS_ANEW:
            self._epochs[member] = 0
            self._owned.pop(member, None)
        elif not error:
            self._epochs[member] = now
            if now < 0:
                self._static_there.discard(member)
            elif member in self._instances:
                self._static_there.add(member)
            if has is not None or now < 0:
                self._owned[member] = dict(has or ())

    def _both(self, what: object, ask: Callable[[Side], Said]) -> Said:
        theirs, ours = map(ask, self._sides)
        self._log.append((what, theirs))
        assert ours == theirs, "\n".join(map(str, self._log[-12:]))
        return theirs

    def _some_topics(self, fewest: int) -> tuple[str, ...]:
        return tuple(sorted(self._random.sample(list(TOPICS), self._random.randint(fewest, len(TOPICS)))))
