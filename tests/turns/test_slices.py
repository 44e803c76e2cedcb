"""Requests in slices: others have their turn in between, and what is small is answered at once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from twisted.internet.defer import Deferred

from kshim.turns import Turn
from kshim.turns.promise import run
from kshim.turns.slices import SLICE_US, each_once, in_pieces, in_slices
from tests.api.harness import advance, collect, context, new_broker


def double(number: int) -> int:
    return 2 * number


def test_what_fits_into_one_slice_is_done_at_once() -> None:
    caller = context(0)
    done = run(in_slices(new_broker().rounds, caller.turn, range(10), double, lambda _: SLICE_US // 10))
    assert done == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]
    assert not caller.turn.is_alone


def test_others_have_their_turn_after_each_slice() -> None:
    broker, caller = new_broker(), context(0)
    seen: list[int | str] = []

    def note(number: int) -> int:
        seen.append(number)
        return double(number)

    done = collect(in_slices(broker.rounds, caller.turn, range(5), note, lambda _: SLICE_US // 2))
    assert caller.turn.is_alone
    assert (seen, done) == ([0, 1], [])
    broker.clock.callLater(0, seen.append, "another")
    advance(broker)
    assert seen == [0, 1, 2, 3, "another", 4]
    assert done == [[0, 2, 4, 6, 8]]


def test_pieces_follow_each_other() -> None:
    broker, caller = new_broker(), context(0)
    answers: dict[tuple[int, ...], Deferred[list[int]]] = {}

    def ask(some: Sequence[int]) -> Deferred[list[int]]:
        return answers.setdefault(tuple(some), Deferred())

    done = collect(in_pieces(broker.rounds, caller.turn, range(5), ask, 2))
    assert caller.turn.is_alone
    for piece in ((0, 1), (2, 3), (4,)):
        advance(broker)
        assert list(answers) == [piece]
        answers.pop(piece).callback(list(map(double, piece)))
    assert done == [[0, 2, 4, 6, 8]]


def test_what_fits_into_one_piece_is_asked_at_once() -> None:
    caller = context(0)

    async def ask(some: Sequence[int]) -> list[int]:
        return list(some)

    assert run(in_pieces(new_broker().rounds, caller.turn, range(2), ask, 2)) == [0, 1]
    assert not caller.turn.is_alone


def test_a_piece_that_fails_ends_it() -> None:
    broker = new_broker()

    async def fail(some: Sequence[int]) -> list[int]:
        raise ValueError(some)

    failures = collect(in_pieces(broker.rounds, Turn(), range(5), fail, 2))
    with pytest.raises(ValueError, match="range"):
        failures[0].raiseException()


def test_what_is_named_again_is_asked_once() -> None:
    asked: list[Sequence[str]] = []

    async def ask(names: Sequence[str]) -> list[str]:
        asked.append(names)
        return [name.upper() for name in names]

    assert run(each_once("abaab", ask)) == ["A", "B", "A", "A", "B"]
    assert run(each_once("ab", ask)) == ["A", "B"]
    assert asked == [["a", "b"], ["a", "b"]]
