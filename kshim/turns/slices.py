"""A request that costs much is answered in slices, between which other requests are answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from kshim.storage.clock import Clock, after
from kshim.turns import unread
from kshim.turns.promise import settled
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


async def in_slices(
    rounds: Rounds,
    turn: Turn,
    items: Sequence[T],
    function: Callable[[T], R],
    cost_us: Callable[[T], int],
) -> list[R]:
    """Return `function(item)` for each item, with others in between if one slice is not enough."""
    if _fit(items, cost_us):
        return [function(item) for item in items]
    slices = Slices(rounds, turn)
    done = []
    for item in items:
        await slices.spend(cost_us(item))
        done.append(function(item))
    return done


def _fit(items: Iterable[T], cost_us: Callable[[T], int]) -> bool:
    """True if one slice is enough. Looks at no more items than that takes."""
    left_us = SLICE_US
    for item in items:
        left_us -= cost_us(item)
        if left_us < 0:
            return False
    return True


async def each_once(items: Sequence[T], ask: Callable[[Sequence[T]], Awaitable[Iterable[R]]]) -> list[R]:
    """Return the answer of `ask(distinct)` for each item, where `distinct` names each item once."""
    distinct = list(dict.fromkeys(items))
    answers = await ask(distinct)
    if len(distinct) == len(items):
        return list(answers)
    found = dict(zip(distinct, answers, strict=True))
    return [found[item] for item in items]


async def in_pieces(
    rounds: Rounds,
    turn: Turn,
    items: Sequence[T],
    function: Callable[[Sequence[T]], Awaitable[Iterable[R]]],
    piece: int,
) -> Iterable[R]:
    """Return `function(items)`, or the results of `function(some)` for one piece after the other."""
    if len(items) <= piece:
        return await function(items)
    turn.is_alone = True
    return await each_piece(Slices(rounds, turn), items, function, piece)


async def each_piece(
    slices: Slices,
    items: Sequence[T],
    function: Callable[[Sequence[T]], Iterable[R] | Awaitable[Iterable[R]]],
    piece: int,
) -> list[R]:
    """Return the results of `function(some)` for each piece, with others in between."""
    done: list[R] = []
    for first in range(0, len(items), piece):
        await slices.spend(SLICE_US)
        done += await settled(function(items[first : first + piece]))
    return done
