"""Plays the history of a seed on both servers, and compares each answer.

All members ask for the range assignor: the uniform one goes by topic ids, which differ from server to server.
After a member has left, and after the topics were searched for an expression, a member sends a heartbeat:
there Apache Kafka computes the target.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from integration.differential.members.side import Partitions, Said, Side
from integration.support.awaiting import wait_until

TOPICS = {"members-a": 3, "members-b": 4, "members-c": 1}
CLASSIC = ("c1", "c2")
REGEXES = ("members-[ab]", "members-.*", ".*-c|members-a")
STARTS_ANEW = {25, 69, 82, 110}
STATES = ("Empty", "Assigning", "Reconciling", "Stable", "PreparingRebalance")
SEARCH_S = 10
CONSUMERS, CONVERSIONS, MIXTURES = "consumers", "conversions", "mixtures"


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
        self._regex = self._random.choice(REGEXES)
        """The only expression of the history: Apache Kafka searches for a second one 10 s later."""
        self.answers: Counter[str] = Counter()
        """The number of answers by request, and by error or state."""
        self._log: list[tuple[object, Said]] = []
        for side in sides:
            side.member_ids = {each: each for each in CLASSIC if each not in self._instances}
            side.generations, side.owned = {}, {}

    @property
    def kind(self) -> str:
        """The subject of the history."""
        if not self._is_mixed:
            return CONSUMERS
        return CONVERSIONS if self._begins_classic else MIXTURES

    def play(self) -> None:
        """Raises AssertionError for the first answer that differs."""
        if self._begins_classic:
            self._form_classic("c1")
        for _ in range(self._random.randint(6, 30)):
            if not self._step():
                break
        self._look()

    def _step(self) -> bool:
        """Do one step; return False if the servers answer differently on purpose."""
        there = [each for each, epoch in self._epochs.items() if epoch > 0]
        member, chance = self._random.choice(list(self._epochs)), self._random.random()
        if self._random.random() < 0.25:
            self._look()
        elif not there or (self._epochs[member] <= 0 and chance < 0.5) or chance < 0.05:
            return self._enter(member)
        elif self._is_mixed and chance < 0.4:
            self._classic_step(self._random.choice(CLASSIC))
        elif chance < 0.84:
            self._consumer_step(member)
        elif chance < 0.9:
            self._bring_regex(self._random.choice(there))
        elif len(there) > 1 and member in there:
            self._beat(member, -1, None)
            self._let_assign(next(each for each in there if each != member))
        elif there == [member]:
            self._leave_last(member)
        return True

    # ---- members of the consumer protocol

    def _enter(self, member: str) -> bool:
        """A member joins. Return False if it is a static one that is there: only kshim takes it."""
        if member in self._static_there:
            return False
        fields = {"rebalance_timeout_ms": 60_000, "instance_id": self._instances.get(member)}
        topics = self._some_topics(self._is_classic())  # kshim rebalances, even if it brings none
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
        elif chance < 0.8:
            self._beat(member, epoch + self._random.choice((-1, 1)), owned)
        elif chance < 0.84:
            self._beat(member, epoch, None, subscribed_topic_regex="")
        elif chance < 0.88 and member in self._instances:
            self._beat(member, -2, None, instance_id=self._instances[member])
        else:
            self._offset_step(member, epoch + self._random.choice((0, 0, -1, 1)))

    def _bring_regex(self, member: str) -> None:
        """A member subscribes by the expression as well, and takes its step once the topics were searched."""
        known = self._sides[0].describe(self._group)
        if self._regex in (each[5] for each in known[1] if each[0] == member):
            return
        before = known[0][2]
        if self._beat(member, self._epochs[member], None, subscribed_topic_regex=self._regex):
            return
        for side in self._sides:
            wait_until(partial(self._is_beyond, side, before), SEARCH_S, "the search")
        self._let_assign(member)

    def _let_assign(self, member: str) -> None:
        self._beat(member, self._epochs[member], None)

    def _leave_last(self, member: str) -> None:
        """The last consumer member leaves: the group is empty, or becomes a classic one of one member, which
        goes on.
        """
        known = self._sides[0].describe(self._group)[1]
        classic = [each[0] for each in known if each[0] != member]
        if len(classic) > 1 or not {*classic} <= {*CLASSIC}:
            return
        self._beat(member, -1, None)
        for each in classic:
            self._form_classic(each)

    # ---- classic members

    def _form_classic(self, member: str) -> None:
        """A classic member joins a classic group that has no other one, and assigns everything to itself."""
        topics = self._some_topics(1)
        self._join(member, topics, {})
        self._sync(member, {topic: range(TOPICS[topic]) for topic in topics})

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

    # ---- offsets, and what administrators see

    def _offset_step(self, member: str, epoch: int) -> None:
        """A member commits or fetches an offset, with an epoch that may be wrong."""
        topic = self._random.choice(list(TOPICS))
        index, offset = self._random.randrange(TOPICS[topic]), self._random.randrange(100)
        fields: dict[str, Any] = {"group_id": self._group, "member_id": member}
        if self._random.random() < 0.6:
            fields["generation_id_or_member_epoch"] = epoch
            self._both(
                ("commits", fields, topic, index), lambda side: side.commit(topic, index, offset, **fields)
            )
            return
        fields |= {"member_epoch": epoch} if self._random.random() < 0.8 else {"member_id": None}
        self._both(("fetches", fields, topic, index), lambda side: side.fetch(topic, index, **fields))

    def _look(self) -> None:
        """An administrator describes, lists or deletes the group."""
        chance = self._random.random()
        if chance < 0.5:
            self._both("describes", lambda side: side.describe(self._group))
        elif chance < 0.9:
            states = tuple(self._random.sample(STATES, self._random.randint(0, 2)))
            types = tuple(self._random.sample(("classic", "consumer"), self._random.randint(0, 2)))
            self._both(("lists", states, types), lambda side: side.listed(self._group, states, types))
        elif not self._both("deletes", lambda side: side.delete(self._group))[0]:
            self._epochs = dict.fromkeys(self._epochs, 0)

    def _is_classic(self) -> bool:
        """True if the group is a classic one."""
        return bool(self._sides[0].describe(self._group)[0][0])

    def _is_beyond(self, side: Side, epoch: int) -> bool:
        return bool(side.describe(self._group)[0][2] > epoch)

    # ---- comparing

    def _beat(self, member: str, epoch: int, owned: Partitions | None, **fields: Any) -> int:
        """Send a heartbeat, and return its error."""
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
        return int(error)

    def _both(self, what: str | tuple[Any, ...], ask: Callable[[Side], Said]) -> Said:
        theirs, ours = map(ask, self._sides)
        self._log.append((what, theirs))
        verb = what if isinstance(what, str) else what[0] if isinstance(what[0], str) else "heartbeats"
        self.answers[f"{verb}: {theirs[0] if theirs else 'nothing'}"] += 1
        assert ours == theirs, "\n".join((*map(str, self._log[-12:]), f"the second server: {ours}"))
        return theirs

    def _some_topics(self, fewest: int) -> tuple[str, ...]:
        return tuple(sorted(self._random.sample(list(TOPICS), self._random.randint(fewest, len(TOPICS)))))
