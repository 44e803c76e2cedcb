"""The topics of the upstream that groups have to do with: asked for when one is first named, then kept up.

A topic counts as deleted when the upstream has not known it at two looks in a row: a broker that has just
started may be behind, and the offsets that groups have committed for a deleted topic are deleted as well.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, count
from typing import Any
from uuid import UUID

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.cluster import Topic
from kshim.cluster.topics import ZERO_UUID, Partition
from kshim.requests.bounded import forget_first
from kshim.storage.clock import Clock
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
"""How often to look whether the known topics are as they were."""
ABSENT_S = 1.0
"""How long a topic that the upstream does not know is not asked for again."""
MOST_ABSENT = 10_000
AT_ONCE = 500
"""Topics that are asked for in one request."""

Key = str | UUID
"""The name of a topic, or its id."""
Ask = Callable[[MetadataRequest], Deferred[MetadataResponse]]
_UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class Topics:
    """The topics that are known, by name and by id."""

    def __init__(self, ask: Ask, clock: Clock) -> None:
        """ask: sends a request to the upstream; errbacks LinkError."""
        self._ask = ask
        self._clock = clock
        self.by_name: dict[str, Topic] = {}
        self.by_id: dict[UUID, Topic] = {}
        self._partition_nos = count()
        self._absent: dict[Key, float] = {}
        """Until when each is not asked for."""
        self._wanted: dict[Key, None] = {}
        self._waiting: list[Deferred[None]] = []
        self._is_asking = False
        self._missed: set[str] = set()
        """Known topics that the upstream did not know at the last look."""
        self._timer: Any = None
        self._changed: list[Callable[[str, str], None]] = []
        self._deleted: list[Callable[[Collection[str]], None]] = []

    def on_change(self, watcher: Callable[[str, str], None]) -> None:
        """Have `watcher(name, change)` called when a topic was extended or deleted; it says so in words."""
        self._changed.append(watcher)

    def on_deletion(self, watcher: Callable[[Collection[str]], None]) -> None:
        """Have `watcher(names)` called when topics were deleted, or deleted and made anew."""
        self._deleted.append(watcher)

    def start(self) -> None:
        """Look from time to time whether the topics are as they were."""
        self._timer = self._clock.callLater(LOOK_S, self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # ---- asking

    def missing(self, keys: Iterable[Key]) -> list[Key]:
        """Those of some topics that have to be learned before a request is answered."""
        found = []
        for key in keys:
            if key in self.by_name or key in self.by_id or key == ZERO_UUID:
                continue
            until_s = self._absent.get(key)
            if until_s is None or until_s <= self._clock.seconds():
                found.append(key)
        return found

    def learn(self, keys: Iterable[Key]) -> Deferred[None]:
        """Ask for topics. Fires when they are known, or known to be absent; errbacks LinkError."""
        self._wanted.update(dict.fromkeys(keys))
        learned: Deferred[None] = Deferred()
        self._waiting.append(learned)
        if not self._is_asking:
            self._ask_next()
        return learned

    def _ask_next(self) -> None:
        wanted, self._wanted = list(self._wanted), {}
        waiting, self._waiting = self._waiting, []
        self._is_asking = True

        def done(failure: Failure | None) -> None:
            self._is_asking = False
            for each in waiting:
                each.callback(failure)  # a Failure makes it errback
            if self._waiting and not self._is_asking:
                self._ask_next()

        Deferred.fromCoroutine(self._learn(wanted)).addCallbacks(lambda _: done(None), done)

    async def _learn(self, wanted: Sequence[Key]) -> None:
        named = [MetadataRequestTopic(name=key) for key in wanted if isinstance(key, str)]
        by_id = [MetadataRequestTopic(topic_id=key, name=None) for key in wanted if isinstance(key, UUID)]
        for asked in named, by_id:  # a broker reads either names or ids
            for first in range(0, len(asked), AT_ONCE):
                for topic in (await self._ask(_request(asked[first : first + AT_ONCE]))).topics:
                    self._show(topic)
        until_s = self._clock.seconds() + ABSENT_S
        for key in wanted:
            self._absent.pop(key, None)
            if key not in self.by_name and key not in self.by_id:
                self._absent[key] = until_s
                forget_first(self._absent, MOST_ABSENT)

    # ---- looking again

    def _look(self) -> None:
        self._timer = self._clock.callLater(LOOK_S, self._look)
        Deferred.fromCoroutine(self.look()).addErrback(_not_now)

    async def look(self) -> None:
        """Look whether the known topics are as they were. Raises LinkError."""
        names = list(self.by_name)
        for first in range(0, len(names), AT_ONCE):
            asked = [MetadataRequestTopic(name=name) for name in names[first : first + AT_ONCE]]
            response = await self._ask(_request(asked))
            for topic in response.topics:
                self._show(topic)
            self._miss({topic.name or "" for topic in response.topics if topic.error_code in _UNKNOWN})

    def _miss(self, unknown: set[str]) -> None:
        """Delete those that were not known at the last look either."""
        gone = [name for name in unknown if name in self._missed]
        self._missed -= set(gone)
        self._missed |= unknown - set(gone)
        self._delete(gone)

    def _delete(self, names: Collection[str]) -> None:
        for name in names:
            del self.by_id[self.by_name.pop(name).topic_id]
            for tell in self._changed:
                tell(name, "was deleted")
        if names:
            for forget in self._deleted:
                forget(names)

    def _show(self, found: MetadataResponseTopic) -> None:
        if found.error_code or not found.name:
            return
        self._missed.discard(found.name)
        before = self.by_name.get(found.name)
        if before is not None and before.topic_id != found.topic_id:
            self._delete([found.name])
            before = None
        had, has = len(before.partitions) if before else 0, len(found.partitions)
        if has < had:  # a broker that is behind: partitions do not go
            return
        topic = _topic(found, before, self._partition_nos)
        self.by_name[topic.name] = self.by_id[topic.topic_id] = topic
        if before is not None and had != has:
            for tell in self._changed:
                tell(topic.name, f"has {has} partitions, and had {had}")


def _request(topics: Sequence[MetadataRequestTopic]) -> MetadataRequest:
    return MetadataRequest(topics=tuple(topics), allow_auto_topic_creation=False)


def _topic(found: MetadataResponseTopic, before: Topic | None, partition_nos: Iterator[int]) -> Topic:
    """before: the same topic as it was, maybe with fewer partitions, whose numbers stay."""
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
