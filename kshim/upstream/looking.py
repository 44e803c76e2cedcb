"""Asks the upstream every LOOK_S which brokers run, and notices when it does not answer."""

from __future__ import annotations

import logging
from collections.abc import Callable

from twisted.internet.defer import Deferred

from kshim.callers.once import Once
from kshim.storage.clock import Timer, TimerClock
from kshim.upstream.interfaces import Upstream
from kshim.upstream.link import LinkError
from kshim.upstream.own_topic import OwnTopic
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

logger = logging.getLogger(__name__)

LOOK_S = 2.0
SILENT_S = 8.0
"""The upstream counts as silent after so long without an answer: clients would wait for it, too."""


class Looking:
    """Looks from `start` to `stop`."""

    def __init__(
        self,
        clock: TimerClock,
        upstream: Upstream,
        own: OwnTopic,
        seen: Callable[[MetadataResponse], None],
        once: Once,
    ) -> None:
        """own: kshim's topic, which gets a new id if somebody recreates it. seen: called with each answer
        after the start.
        """
        self._clock = clock
        self._upstream = upstream
        self._own = own
        self._seen = seen
        self._once = once
        self._timer: Timer | None = None
        self._answered_s = 0.0
        """When the upstream last answered."""
        self._has_failed = False
        """True if the last question was not answered."""
        self._is_stopped = False

    @property
    def is_silent(self) -> bool:
        """True if the upstream does not answer."""
        return self._has_failed or self._clock.seconds() - self._answered_s > SILENT_S

    async def ask(self) -> MetadataResponse:
        """Ask for the running brokers. Raises LinkError."""
        asked = MetadataRequestTopic(name=self._own.name)
        request = MetadataRequest(topics=(asked,), allow_auto_topic_creation=False)
        response: MetadataResponse = await self._upstream.ask(request)
        self._own.learn(response)
        self._answered_s, self._has_failed = self._clock.seconds(), False
        return response

    def start(self) -> None:
        self._answered_s = self._clock.seconds()
        self._timer = self._clock.callLater(LOOK_S, self._look)

    def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _look(self) -> None:
        Deferred.fromCoroutine(self._look_again())

    async def _look_again(self) -> None:
        try:
            found = await self.ask()
        except LinkError as error:
            self._has_failed = True
            logger.log(self._once.level("upstream"), "the upstream does not answer: %s", error)
        else:
            if not self._is_stopped:
                self._seen(found)
        if not self._is_stopped:
            self._timer = self._clock.callLater(LOOK_S, self._look)
