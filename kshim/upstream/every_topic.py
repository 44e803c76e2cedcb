"""All topics of the upstream, while groups subscribe by regular expression. They are looked at every LOOK_S.

Of a topic that no group has named, kshim keeps only what an assignment needs: its id, and its number of
partitions. The answer may be large, so it is decoded aside.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import NamedTuple
from uuid import UUID

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.storage.clock import Call
from kshim.turns import Turn
from kshim.turns.aside import Aside
from kshim.turns.rounds import Rounds
from kshim.turns.slices import Slices
from kshim.upstream.link import Link, LinkError
from kshim.upstream.topics import LOOK_S, Topics
from schemas.api_key import ApiKey
from schemas.message import MalformedMessage
from schemas.messages.metadata import MetadataRequest, MetadataResponse
from schemas.registry import decode_response

logger = logging.getLogger(__name__)

TOPIC_US = 5
ALL = MetadataRequest(topics=None, allow_auto_topic_creation=False)


class Brief(NamedTuple):
    """The facts about a topic that are kept."""

    topic_id: UUID
    partitions: int


class EveryTopic:
    """The topics that the last look found."""

    def __init__(
        self,
        link: Callable[[], Awaitable[Link]],
        topics: Topics,
        aside: Aside,
        rounds: Rounds,
        is_needed: Callable[[], bool],
    ) -> None:
        """link: returns a link to any broker; raises LinkError. topics: those that groups have named.
        is_needed: returns True while a group subscribes by regular expression.
        """
        self.by_name: Mapping[str, Brief] = {}
        self.names_by_id: Mapping[UUID, str] = {}
        self.version = 0
        """Grows when topics are created: the time, in ms, at which that was noticed last. So the numbers of
        several kshim can be compared.
        """
        self._link = link
        self._topics = topics
        self._aside = aside
        self._rounds = rounds
        self._is_needed = is_needed
        self._asked_s = float("-inf")
        """When the last answer was asked for."""
        self._looking: list[Deferred[None]] | None = None
        """The callers that wait for the look under way; None if there is none."""
        self._timer: Call | None = None
        self.created: Callable[[], None] = _nobody_waits
        """Called when a look has found new topics."""
        self.before_new: Callable[[], Awaitable[None]] = _at_once
        """Awaited before new topics are known, which groups then search: those who may see them are asked
        which.
        """

    def start(self) -> None:
        """Begin to look every LOOK_S, if there is a need."""
        self._timer = self._topics.clock.callLater(LOOK_S, self._look_again)

    def stop(self) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def know(self, age_s: float) -> None:
        """Look, unless the last look was at most `age_s` ago. Raises LinkError."""
        since_s = self._topics.clock.seconds() - age_s
        while self._asked_s < since_s:
            await self.look()

    def look(self) -> Deferred[None]:
        """Ask for all topics, or wait for the answer that is under way. Errbacks LinkError."""
        looked: Deferred[None] = Deferred()
        if self._looking is None:
            self._looking = [looked]
            Deferred.fromCoroutine(self._look()).addBoth(self._looked)
        else:
            self._looking.append(looked)
        return looked

    def _looked(self, result: Failure | None) -> None:
        waiting, self._looking = self._looking or [], None
        for each in waiting:
            if result is None:
                each.callback(None)
            else:
                each.errback(result)

    async def _look(self) -> None:
        asked_s = self._topics.clock.seconds()
        link = await self._link()
        read = partial(decode_response, ApiKey.METADATA, link.version(ApiKey.METADATA))
        frame = await link.ask(ALL, is_read=False)
        try:
            _, response = await self._aside.run(partial(read, frame))
        except MalformedMessage as error:
            raise LinkError(f"upstream broker {link.address} lists topics in what cannot be read") from error
        assert isinstance(response, MetadataResponse)
        await self._take(response, asked_s)

    async def _take(self, response: MetadataResponse, asked_s: float) -> None:
        slices = Slices(self._rounds, Turn())
        found: dict[str, Brief] = {}
        for topic in response.topics:
            await slices.spend(TOPIC_US)
            if topic.name and not topic.error_code:
                found[topic.name] = Brief(topic.topic_id, len(topic.partitions))
                self._topics.take(topic, asked_s)
        has_new = not found.keys() <= self.by_name.keys()
        if has_new:
            await self.before_new()
            self.version = max(self.version + 1, int(self._topics.clock.seconds() * 1000))
        self.by_name = found
        self.names_by_id = {each.topic_id: name for name, each in found.items()}
        self._asked_s = asked_s
        if has_new:
            self.created()

    def _look_again(self) -> None:
        self._timer = self._topics.clock.callLater(LOOK_S, self._look_again)
        if self._is_needed():
            self.look().addErrback(_not_now)
        else:
            self.by_name, self.names_by_id = {}, {}


async def _at_once() -> None:
    """Do nothing."""


def _nobody_waits() -> None:
    """Do nothing."""


def _not_now(failure: Failure) -> None:
    failure.trap(LinkError)
    logger.debug("all topics were not looked at: %s", failure.value)
