"""Requests about several groups: each is asked once, in slices, and no more than an answer may have."""

from __future__ import annotations

import pytest

from kshim.answering.each_group import ask_each_group
from kshim.turns import unread
from kshim.turns.promise import run
from schemas.message import TooManyElements
from tests.api.harness import advance, collect, context, new_broker


def test_groups_with_long_ids_cost_more() -> None:
    """Their ids are hashed letter by letter."""
    asked: list[str] = []

    async def ask(group_id: str) -> str:
        asked.append(group_id)
        return group_id

    broker, caller = new_broker(), context(0)
    ids = [f"{n}-".ljust(32_000, "g") for n in range(8)]
    answers = collect(ask_each_group(broker, caller, ids, ask))
    assert len(asked) < 4
    advance(broker)
    assert (asked, answers) == (ids, [ids])
    assert run(ask_each_group(broker, caller, list("abcdefgh"), ask)) == list("abcdefgh")


def test_no_more_groups_are_asked_than_an_answer_may_have_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "MAX_ANSWER_ELEMENTS", 5)
    asked: list[int] = []

    async def ask(group: int) -> list[int]:
        asked.append(group)
        return [group] * 3

    with pytest.raises(TooManyElements):
        run(ask_each_group(new_broker(), context(0), range(4), ask, elements=len))
    assert asked == [0, 1]
