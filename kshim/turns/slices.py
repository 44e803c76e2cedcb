"""A request that costs much is answered in slices, between which other requests are answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from twisted.internet.defer import Deferred

from kshim.storage.clock import Clock, after
from kshim.turns import unread
from kshim.turns.later import Later, then
from kshim.turns.rounds import Rounds
from kshim.turns.turn import Turn
from schemas.message import TooManyElements

SLICE_US = 10_000
"""A slice ends when it may have taken so long."""

R = TypeVar("R")
T = TypeVar("T")


class AnswerElements:
    """Counts the elements of an answer while it is made."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, count: int) -> None:
        self._count += count

    def check(self) -> None:
        """Raise TooManyElements if there are more than an answer may have."""
        if self._count > unread.MAX_ANSWER_ELEMENTS:
            raise TooManyElements


async def others_first(clock: Clock) -> None:
    """Go on when other requests have had their turn."""
    await after(clock, 0)


class Slices:
    """Counts what a request may have cost since others had their turn; then it is answered alone."""

    def __init__(self, rounds: Rounds, turn: Turn) -> None:
        self._rounds = rounds
        self._turn = turn
        self._left_us = SLICE_US

    async def spend(self, cost_us: int) -> None:
        """Take `cost_us` from this slice; if it is over, let others have their turn first."""
        self._left_us -= cost_us
        if self._left_us < 0:
            self._turn.is_alone = True
            await self._rounds.next()
            self._left_us = SLICE_US - cost_us


def in_slices(
    rounds: Rounds,
    turn: Turn,
    items: Sequence[T],
    function: Callable[[T], R],
    cost_us: Callable[[T], int],
) -> Later[list[R]]:
    """`function(item)` for each item, at once if they fit into one slice."""
    if _fit(items, cost_us):
        return [function(item) for item in items]
    return Deferred.fromCoroutine(_in_slices(Slices(rounds, turn), items, function, cost_us))


def _fit(items: Iterable[T], cost_us: Callable[[T], int]) -> bool:
    """True if one slice is enough. Looks at no more items than fit into a slice."""
    left_us = SLICE_US
    for item in items:
        left_us -= cost_us(item)
        if left_us < 0:
            return False
    return True


def each_once(items: Sequence[T], ask: Callable[[Sequence[T]], Later[Iterable[R]]]) -> Later[list[R]]:
    """`ask(items)`, without those that were named before: they have the same answer as the first."""
    distinct = list(dict.fromkeys(items))

    def spread(answers: Iterable[R]) -> list[R]:
        found = dict(zip(distinct, answers, strict=True))
        return [found[item] for item in items]

    return then(ask(distinct), list if len(distinct) == len(items) else spread)


async def _in_slices(
    slices: Slices, items: Iterable[T], function: Callable[[T], R], cost_us: Callable[[T], int]
) -> list[R]:
    done = []
    for item in items:
        await slices.spend(cost_us(item))
        done.append(function(item))
    return done


def in_pieces(
    rounds: Rounds,
    turn: Turn,
    items: Sequence[T],
    function: Callable[[Sequence[T]], Later[Iterable[R]]],
    piece: int,
) -> Later[Iterable[R]]:
    """`function(items)`, or the results of `function(some)` for as many pieces as there are, in turn."""
    if len(items) <= piece:
        return function(items)
    turn.is_alone = True
    return Deferred.fromCoroutine(each_piece(Slices(rounds, turn), items, function, piece))


async def each_piece(
    slices: Slices, items: Sequence[T], function: Callable[[Sequence[T]], Later[Iterable[R]]], piece: int
) -> list[R]:
    """The results of `function(some)` for each piece, with others in between."""
    done: list[R] = []
    for first in range(0, len(items), piece):
        await slices.spend(SLICE_US)
        results = function(items[first : first + piece])
        done += await results if isinstance(results, Deferred) else results
    return done
