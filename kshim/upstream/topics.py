"""The upstream's topics that groups use. Each is asked for when it is first named, then kept up to date.

A topic counts as deleted when the upstream did not know it at two looks in a row. One look is not enough: a
broker that has just started may be behind, and the offsets that groups have committed for a deleted topic are
deleted as well. A topic with a new id was deleted and recreated; that counts at once. A broker that then
still answers with the former id is behind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from uuid import UUID

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.callers.bounded import forget_first
from kshim.cluster import Topic
from kshim.cluster.names import MAX_NAME_LENGTH
from kshim.cluster.topics import ZERO_UUID, Partition
from kshim.coordination.cluster_topics import CREATED
from kshim.storage.clock import Call, TimerClock
from kshim.upstream.learning import AT_ONCE, Key, Learning
from kshim.upstream.link import LinkError
from schemas.error_code import ErrorCode
from schemas.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

logger = logging.getLogger(__name__)

LOOK_S = 30.0
"""How often the known topics are asked for again."""
ABSENT_S = 1.0
"""How long kshim does not ask again for a topic that the upstream does not know."""
MOST_ABSENT = 10_000
MOST_FORMER = 10_000
Ask = Callable[[MetadataRequest], Deferred[MetadataResponse]]
_UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class Topics:
    """The known topics, by name and by id."""

    def __init__(self, ask: Ask, clock: TimerClock) -> None:
        """ask: sends a request to the upstream; errbacks LinkError."""
        self._ask = ask
        self.clock = clock
        self.by_name: dict[str, Topic] = {}
        self.by_id: dict[UUID, Topic] = {}
        self.confirmed_s: dict[Key, float] = {}
        """When the upstream was last asked for each known topic."""
        self._former: dict[UUID, None] = {}
        """Former ids of topics that were recreated."""
        self._partition_nos = count()
        self._absent: dict[Key, float] = {}
        """Keys that the upstream does not know, and until when they are not asked for again."""
        self._hidden: dict[str, None] = {}
        """Names that the upstream does not let kshim see."""
        self._learning = Learning(self._ask_for)
        self._missed: set[str] = set()
        """Known topics that the upstream did not know at the last look."""
        self._timer: Call | None = None
        self.wanted: Callable[[], Iterable[str]] = tuple
        """Returns the names that groups subscribe to, known or not."""
        self.is_wanted: Callable[[str], bool] = lambda _: False
        """True for one of these names."""
        self._changed: list[Callable[[str, str], None]] = []
        self._deleted: list[Callable[[Mapping[str, UUID]], None]] = []

    def on_change(self, watcher: Callable[[str, str], None]) -> None:
        """Call `watcher(name, change)` when a topic was extended or deleted, or a wanted one was created.
        change: a predicate, e.g. "was deleted".
        """
        self._changed.append(watcher)

    def on_deletion(self, watcher: Callable[[Mapping[str, UUID]], None]) -> None:
        """Call `watcher(ids)`, with ids by name, when topics were deleted, or deleted and recreated."""
        self._deleted.append(watcher)

    def start(self) -> None:
        """Begin to ask for the known topics every LOOK_S."""
        self._timer = self.clock.callLater(LOOK_S, self._look)

    def stop(self) -> None:
        """Ask no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def id_of(self, name: str) -> UUID:
        """Return a topic's id; all zeros if the topic is not known."""
        topic = self.by_name.get(name)
        return ZERO_UUID if topic is None else topic.topic_id

    def hides(self, names: Iterable[str]) -> bool:
        """True if the upstream does not let kshim see one of these topics, and never has."""
        return any(name in self._hidden and name not in self.by_name for name in names)

    # ---- asking

    def missing(self, keys: Iterable[Key]) -> list[Key]:
        """Return the keys that have to be learned before a request is answered."""
        found = []
        for key in keys:
            if key in self.by_name or key in self.by_id or key == ZERO_UUID:
                continue
            if isinstance(key, str) and not _may_exist(key):
                continue
            until_s = self._absent.get(key)
            if until_s is None or until_s <= self.clock.seconds():
                found.append(key)
        return found

    def learn(self, keys: Iterable[Key]) -> Deferred[None]:
        """Ask for topics. Fires when they are known, or known to be absent; errbacks LinkError."""
        return self._learning.learn(keys)

    def _ask_for(self, wanted: Sequence[Key]) -> Deferred[None]:
        """Ask for some names or for some ids. A broker reads only one of both."""
        return Deferred.fromCoroutine(self._learn(wanted))

    async def _learn(self, wanted: Sequence[Key]) -> None:
        asked = [
            MetadataRequestTopic(name=key)
            if isinstance(key, str)
            else MetadataRequestTopic(topic_id=key, name=None)
            for key in wanted
        ]
        asked_s = self.clock.seconds()
        for topic in (await self._ask(_request(asked))).topics:
            self._show(topic, asked_s)
        until_s = self.clock.seconds() + ABSENT_S
        for key in wanted:
            self._absent.pop(key, None)
            if key not in self.by_name and key not in self.by_id:
                self._absent[key] = until_s
                forget_first(self._absent, MOST_ABSENT)

    # ---- looking again

    def _look(self) -> None:
        self._timer = self.clock.callLater(LOOK_S, self._look)
        Deferred.fromCoroutine(self.look()).addErrback(_not_now)

    async def look(self) -> None:
        """Ask for all known topics again, and for those that groups wait for. Raises LinkError."""
        names = list(self.by_name)
        for first in range(0, len(names), AT_ONCE):
            self._miss(await self.ask_again(names[first : first + AT_ONCE]))
        await self._ask_for_wanted(lambda name: name not in self.by_name)

    async def look_at_wanted(self) -> None:
        """Ask for the topics that groups subscribe to. One that the upstream does not know is not taken for
        deleted, however often that happens. Raises LinkError.
        """
        await self._ask_for_wanted(lambda _: True)

    async def _ask_for_wanted(self, is_asked: Callable[[str], bool]) -> None:
        names = [name for name in self.wanted() if is_asked(name) and _may_exist(name)]
        await self.ask_again(names)

    def take(self, found: MetadataResponseTopic, asked_s: float) -> None:
        """Take what the upstream has answered about a topic, if the topic is known."""
        if found.name in self.by_name:
            self._show(found, asked_s)

    async def ask_again(self, names: Sequence[str]) -> set[str]:
        """Ask for known topics; return those that the upstream does not know. Raises LinkError."""
        unknown: set[str] = set()
        for first in range(0, len(names), AT_ONCE):
            some, asked_s = names[first : first + AT_ONCE], self.clock.seconds()
            response = await self._ask(_request([MetadataRequestTopic(name=name) for name in some]))
            for topic in response.topics:
                self._show(topic, asked_s)
            unknown |= {topic.name or "" for topic in response.topics if topic.error_code in _UNKNOWN}
        return unknown

    def _miss(self, unknown: set[str]) -> None:
        """Delete the topics that were unknown at the last look, too."""
        gone = [name for name in unknown if name in self._missed and name in self.by_name]
        self._missed -= set(gone)
        self._missed |= unknown - set(gone)
        self._delete(gone)

    def _delete(self, names: Iterable[str]) -> None:
        ids = {name: self.by_name.pop(name).topic_id for name in names}
        for name, topic_id in ids.items():
            del self.by_id[topic_id], self.confirmed_s[name]
            self._note(name, "was deleted")
        if ids:
            for forget in self._deleted:
                forget(ids)

    def _show(self, found: MetadataResponseTopic, asked_s: float) -> None:
        if found.name and found.name in self.confirmed_s:
            self.confirmed_s[found.name] = asked_s
        if found.name:
            self._hidden.pop(found.name, None)
            if found.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                self._hidden[found.name] = None
                forget_first(self._hidden, MOST_ABSENT)
        if found.error_code or not found.name or found.topic_id in self._former:
            return
        self._missed.discard(found.name)
        before = self.by_name.get(found.name)
        if before is not None and before.topic_id != found.topic_id:
            self._former[before.topic_id] = None
            forget_first(self._former, MOST_FORMER)
            self._delete([found.name])
            before = None
        had, has = len(before.partitions) if before else 0, len(found.partitions)
        if has < had:  # the broker is behind: topics do not lose partitions
            return
        topic = _topic(found, before, self._partition_nos)
        self.by_name[topic.name] = self.by_id[topic.topic_id] = topic
        self.confirmed_s[topic.name] = asked_s
        if before is not None and had != has:
            self._note(topic.name, f"has {has} partitions, and had {had}")
        elif before is None and self.is_wanted(topic.name):
            self._note(topic.name, CREATED)

    def _note(self, name: str, change: str) -> None:
        for watcher in self._changed:
            watcher(name, change)


def _may_exist(name: str) -> bool:
    """False for a name that is too long for a topic: it would be kept."""
    return len(name) <= MAX_NAME_LENGTH


def _request(topics: Sequence[MetadataRequestTopic]) -> MetadataRequest:
    return MetadataRequest(topics=tuple(topics), allow_auto_topic_creation=False)


def _topic(found: MetadataResponseTopic, before: Topic | None, partition_nos: Iterator[int]) -> Topic:
    """Make a topic of what the upstream answered.

    before: the same topic as it was. Its partitions keep their numbers; there may be new ones.
    """
    assert found.name
    numbers = chain((each.partition_no for each in before.partitions) if before else (), partition_nos)
    partitions = (
        Partition(
            each.partition_index,
            next(numbers),
            each.leader_id,
            each.leader_epoch,
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
        )
        for each in sorted(found.partitions, key=lambda each: each.partition_index)
    )
    return Topic(found.name, found.topic_id, tuple(partitions), is_internal=found.is_internal)


def _not_now(failure: Failure) -> None:
    failure.trap(LinkError)
    logger.debug("topics were not looked at: %s", failure.value)
