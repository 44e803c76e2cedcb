"""Asks each group of a request once, in slices, for the APIs about several groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kshim.answering.views import AnyView
from kshim.callers import RequestContext
from kshim.turns.later import Later, gather, then
from kshim.turns.slices import AnswerElements, each_once, in_slices

GROUP_US = 50
"""What it may cost to ask one group."""

A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")


def ask_each_group(
    broker: AnyView,
    context: RequestContext,
    asked: Sequence[T],
    ask: Callable[[T], Later[R]],
    respond: Callable[[list[R]], A],
    group_id: Callable[[T], str] = str,
    elements: Callable[[R], int] = lambda _: 0,
) -> Later[A]:
    """`respond(answers)` with the answer to `ask(each)` for each group, asked in slices.

    group_id: returns the id in `each`. It is hashed letter by letter. elements: how many elements an answer
    has. A group that is asked for again gets the same answer.
    """
    if len(asked) == 1:
        return then(ask(asked[0]), lambda answer: respond([answer]))
    made = AnswerElements()

    def count(answer: R) -> R:
        made.add(elements(answer))
        return answer

    def ask_once(each: T) -> Later[R]:
        made.check()
        return then(ask(each), count)

    def ask_all(distinct: Sequence[T]) -> Later[Iterable[R]]:
        answers = in_slices(
            broker.rounds, context.turn, distinct, ask_once, lambda each: GROUP_US + len(group_id(each)) // 8
        )
        return then(answers, lambda answers: gather(answers, lambda found: found))

    answers: Later[list[R]] = each_once(asked, ask_all)
    return then(answers, respond)
