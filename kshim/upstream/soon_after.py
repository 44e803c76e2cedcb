"""Looks at the upstream soon after a client has asked it, through kshim, to change something.

What is changed at the upstream itself is noticed by the looks of every half a minute.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.storage.clock import Timer, TimerClock
from kshim.upstream.link import LinkError
from schemas.api_key import ApiKey

logger = logging.getLogger(__name__)

AFTER_S = (0.3, 1.5, 5.0)
"""When to look, after the last request: the upstream takes a moment, and its brokers may be behind."""


class SoonAfter:
    """Looks as often as AFTER_S says."""

    def __init__(self, clock: TimerClock, look: Callable[[], Awaitable[None]]) -> None:
        """look: raises LinkError."""
        self._clock = clock
        self._look = look
        self._timers: Sequence[Timer] = ()

    def note(self) -> None:
        """Look soon, because a client is changing something."""
        self.stop()
        self._timers = [self._clock.callLater(each, self._begin) for each in AFTER_S]

    def stop(self) -> None:
        """Stop looking."""
        for timer in self._timers:
            if timer.active():
                timer.cancel()
        self._timers = ()

    def _begin(self) -> None:
        Deferred.fromCoroutine(self._look_now()).addErrback(_not_now)

    async def _look_now(self) -> None:
        await self._look()


def noted_changes(topics: SoonAfter, configs: SoonAfter) -> Mapping[ApiKey, Callable[[], object]]:
    """Return what to call when a request of these APIs passes: it may change topics, or configs of groups."""
    return {
        ApiKey.CREATE_TOPICS: topics.note,
        ApiKey.DELETE_TOPICS: topics.note,
        ApiKey.CREATE_PARTITIONS: topics.note,
        ApiKey.ALTER_CONFIGS: configs.note,
        ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.note,
    }


def after_changes(
    clock: TimerClock,
    look_at_topics: Callable[[], Awaitable[None]],
    look_at_configs: Callable[[], Awaitable[None]],
    stops: AsyncExitStack,
) -> Mapping[ApiKey, Callable[[], object]]:
    """Return what looks at topics, or at configs of groups, soon after a request. stops: gets its end."""
    topics, configs = SoonAfter(clock, look_at_topics), SoonAfter(clock, look_at_configs)
    for each in (topics, configs):
        stops.callback(each.stop)
    return noted_changes(topics, configs)


def _not_now(failure: Failure) -> None:
    failure.trap(LinkError)
    logger.debug("the upstream was not looked at: %s", failure.value)
