"""Requests in slices: others have their turn in between, and what is small is answered at once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from twisted.internet.defer import Deferred

from kshim.requests import unread
from kshim.requests.later import Later
from kshim.requests.slices import SLICE_US, ask_each_group, each_once, in_pieces, in_slices
from schemas.message import TooManyElements
from tests.api.harness import advance, collect, context, new_broker


def double(number: int) -> int:
    return 2 * number


def test_what_fits_into_one_slice_is_done_at_once() -> None:
    caller = context(0)
    done = in_slices(new_broker(), caller, range(10), double, lambda _: SLICE_US // 10)
    assert done == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]
    assert not caller.turn.is_alone


def test_others_have_their_turn_after_each_slice() -> None:
    broker, caller = new_broker(), context(0)
    seen: list[int | str] = []

    def note(number: int) -> int:
        seen.append(number)
        return double(number)

    done = collect(in_slices(broker, caller, range(5), note, lambda _: SLICE_US // 2))
    assert caller.turn.is_alone
    assert (seen, done) == ([0, 1], [])
    broker.clock.callLater(0, seen.append, "another")
    advance(broker)
    assert seen == [0, 1, 2, 3, "another", 4]
    assert done == [[0, 2, 4, 6, 8]]


def test_pieces_follow_each_other() -> None:
    broker, caller = new_broker(), context(0)
    answers: dict[tuple[int, ...], Deferred[list[int]]] = {}

    def ask(some: Sequence[int]) -> Later[list[int]]:
        return answers.setdefault(tuple(some), Deferred())

    done = collect(in_pieces(broker, caller, range(5), ask, 2))
    assert caller.turn.is_alone
    for piece in ((0, 1), (2, 3), (4,)):
        advance(broker)
        assert list(answers) == [piece]
        answers.pop(piece).callback(list(map(double, piece)))
    assert done == [[0, 2, 4, 6, 8]]


def test_what_fits_into_one_piece_is_asked_at_once() -> None:
    caller = context(0)
    assert in_pieces(new_broker(), caller, range(2), lambda some: list(some), 2) == [0, 1]
    assert not caller.turn.is_alone


def test_a_piece_that_fails_ends_it() -> None:
    broker = new_broker()

    def fail(some: Sequence[int]) -> list[int]:
        raise ValueError(some)

    failed = in_pieces(broker, context(0), range(5), fail, 2)
    assert isinstance(failed, Deferred)
    failures = collect(failed)
    with pytest.raises(ValueError, match="range"):
        failures[0].raiseException()


def test_groups_with_long_ids_cost_more() -> None:
    """Their ids are hashed letter by letter."""
    asked: list[str] = []

    def ask(group_id: str) -> str:
        asked.append(group_id)
        return group_id

    broker, caller = new_broker(), context(0)
    ids = [f"{n}-".ljust(32_000, "g") for n in range(8)]
    answers = collect(ask_each_group(broker, caller, ids, ask, len))
    assert len(asked) < 4
    advance(broker)
    assert (asked, answers) == (ids, [8])
    assert ask_each_group(broker, caller, list("abcdefgh"), ask, len) == 8


def test_what_is_named_again_is_asked_once() -> None:
    asked: list[Sequence[str]] = []

    def ask(names: Sequence[str]) -> Later[list[str]]:
        asked.append(names)
        return [name.upper() for name in names]

    assert each_once("abaab", ask) == ["A", "B", "A", "A", "B"]
    assert each_once("ab", ask) == ["A", "B"]
    assert asked == [["a", "b"], ["a", "b"]]


def test_no_more_groups_are_asked_than_an_answer_may_have_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "MAX_ANSWER_ELEMENTS", 5)
    asked: list[int] = []

    def ask(group: int) -> list[int]:
        asked.append(group)
        return [group] * 3

    with pytest.raises(TooManyElements):
        ask_each_group(new_broker(), context(0), range(4), ask, lambda found: found, elements=len)
    assert asked == [0, 1]
