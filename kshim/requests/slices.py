"""A request that costs much is answered in slices, between which other requests are answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
        """Take `cost_us` from this slice; if it is over, let others have their turn first."""
        self._left_us -= cost_us
        if self._left_us < 0:
            over: Deferred[None] = Deferred()
            self._clock.callLater(0, over.callback, None)
            await over
            self._left_us = SLICE_US - cost_us


def in_slices(
    broker: Broker,
    context: RequestContext,
    items: Sequence[T],
    function: Callable[[T], R],
    cost_us: Callable[[T], int],
) -> Later[list[R]]:
    """`function(item)` for each item, at once if they fit into one slice."""
    if sum(map(cost_us, items)) <= SLICE_US:
        return [function(item) for item in items]
    return Deferred.fromCoroutine(_in_slices(Slices(broker.clock, context.turn), items, function, cost_us))


async def _in_slices(
    slices: Slices, items: Iterable[T], function: Callable[[T], R], cost_us: Callable[[T], int]
) -> list[R]:
    done = []
    for item in items:
        await slices.spend(cost_us(item))
        done.append(function(item))
    return done


def in_pieces(
    broker: Broker,
    context: RequestContext,
    items: Sequence[T],
    function: Callable[[Sequence[T]], Later[Iterable[R]]],
    piece: int,
) -> Later[Iterable[R]]:
    """`function(items)`, or the results of `function(some)` for as many pieces as there are, in turn."""
    if len(items) <= piece:
        return function(items)
    return Deferred.fromCoroutine(_in_pieces(Slices(broker.clock, context.turn), items, function, piece))


async def _in_pieces(
    slices: Slices, items: Sequence[T], function: Callable[[Sequence[T]], Later[Iterable[R]]], piece: int
) -> list[R]:
    done: list[R] = []
    for first in range(0, len(items), piece):
        await slices.spend(SLICE_US)
        results = function(items[first : first + piece])
        done += await results if isinstance(results, Deferred) else results
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
