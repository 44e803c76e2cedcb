"""A request that costs much is answered in slices, between which other requests are answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

from twisted.internet.defer import Deferred

from kshim.requests.broker import Broker
from kshim.requests.context import RequestContext, Turn
from kshim.requests.later import Later
from kshim.storage.clock import Clock
from kshim.storage.interfaces import Search, TimestampOffset

SLICE_US = 10_000
"""A slice ends when it may have taken so long."""
LIGHT_STEP_US = 5_000
"""A step that may take longer is done aside."""

R = TypeVar("R")
T = TypeVar("T")


class Slices:
    """Counts what a request may have cost since others had their turn. It is answered alone."""

    def __init__(self, clock: Clock, turn: Turn) -> None:
        turn.is_alone = True
        self._clock = clock
        self._left_us = SLICE_US

    async def spend(self, cost_us: int) -> None:
        """Take `cost_us` from this slice; if it is over, let others have their turn."""
        self._left_us -= cost_us
        if self._left_us < 0:
            over: Deferred[None] = Deferred()
            self._clock.callLater(0, over.callback, None)
            await over
            self._left_us = SLICE_US


def in_slices(
    broker: Broker, context: RequestContext, items: Iterable[T], function: Callable[[T], R], cost_us: int
) -> Later[list[R]]:
    """`function(item)` for each item; each may take `cost_us`."""
    left = iter(items)
    first = [function(item) for item in islice(left, SLICE_US // cost_us)]
    rest = list(left)
    if not rest:
        return first
    return Deferred.fromCoroutine(_rest(Slices(broker.clock, context.turn), first, rest, function, cost_us))


async def _rest(
    slices: Slices, done: list[R], items: Iterable[T], function: Callable[[T], R], cost_us: int
) -> list[R]:
    await slices.spend(SLICE_US + 1)  # those that are done were the first slice
    for item in items:
        done.append(function(item))
        await slices.spend(cost_us)
    return done


async def search(broker: Broker, slices: Slices, search: Search) -> TimestampOffset | None:
    """What a search finds."""
    result = None
    while True:
        try:
            step = search.send(result)
        except StopIteration as done:
            found: TimestampOffset | None = done.value
            return found
        if step.cost_us <= LIGHT_STEP_US:
            await slices.spend(step.cost_us)
            result = step.do()
        else:
            result = await broker.aside.run(step.do)
