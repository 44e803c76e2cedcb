"""Asks each group of a request once, in slices, for the APIs about several groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from kshim.answering.views import AnyView
from kshim.callers import RequestContext
from kshim.turns.promise import Runnable, run, settled
from kshim.turns.slices import AnswerElements, each_once, in_slices

GROUP_US = 50
"""What it may cost to ask one group."""

R = TypeVar("R")
T = TypeVar("T")


async def ask_each_group(
    broker: AnyView,
    context: RequestContext,
    asked: Sequence[T],
    ask: Callable[[T], Runnable[R]],
    group_id: Callable[[T], str] = str,
    elements: Callable[[R], int] = lambda _: 0,
) -> list[R]:
    """Return the answer of `ask(each)` for each group, asked in slices.

    group_id: returns the id in `each`. It is hashed letter by letter. elements: returns how many elements an
    answer has. A group that is asked for again gets the same answer.
    """
    if len(asked) == 1:
        return [await ask(asked[0])]
    made = AnswerElements()

    async def ask_once(each: T) -> R:
        made.check()
        answer = await ask(each)
        made.add(elements(answer))
        return answer

    async def ask_all(distinct: Sequence[T]) -> list[R]:
        answers = await in_slices(
            broker.rounds,
            context.turn,
            distinct,
            lambda each: run(ask_once(each)),
            lambda each: GROUP_US + len(group_id(each)) // 8,
        )
        return [await settled(each) for each in answers]

    return await each_once(asked, ask_all)
