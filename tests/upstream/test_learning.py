"""Many topics of one client do not delay the few of another one, and nobody is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from kshim.upstream.learning import AT_ONCE, FEW, UNDER_WAY, Key, Learning
from kshim.upstream.link import LinkError
from tests.api.harness import result


class World:
    def __init__(self) -> None:
        self.asked: list[list[Key]] = []
        self.answers: list[Deferred[None]] = []
        self.learning = Learning(self._ask)

    def _ask(self, keys: Sequence[Key]) -> Deferred[None]:
        self.asked.append(list(keys))
        self.answers.append(Deferred())
        return self.answers[-1]

    def answer(self) -> None:
        self.answers.pop(0).callback(None)


def named(client: str, count: int) -> list[Key]:
    return [f"{client}{number}" for number in range(count)]


def test_few_topics_do_not_wait_for_many() -> None:
    world = World()
    flood = [world.learning.learn(named(client, 98_000)) for client in "abcd"]
    assert len(world.asked) == UNDER_WAY
    few = [world.learning.learn(named("few", FEW)), world.learning.learn(["one"])]
    world.answer()
    assert {"one", *named("few", FEW)} <= set(world.asked[-1])
    world.answers.pop().callback(None)
    assert all(each.called for each in few)
    assert not any(each.called for each in flood)


def test_each_request_takes_some_of_all_that_is_large() -> None:
    world = World()
    for client in "abcd":
        world.learning.learn(named(client, 10_000))
    world.answer()
    shares = [sum(str(key).startswith(client) for key in world.asked[-1]) for client in "abcd"]
    assert shares == [AT_ONCE // 4] * 4


def test_small_ones_without_end_do_not_stop_what_is_large() -> None:
    world = World()
    large = world.learning.learn(named("large", 3_000))
    for number in range(100):
        if large.called:
            break
        for client in range(50):
            world.learning.learn(named(f"{number}-{client}-", FEW))
        world.answer()
    assert large.called


@given(st.lists(st.tuples(st.integers(0, 1_200), st.integers(0, 120)), max_size=12), st.randoms())
def test_everybody_is_answered_and_all_is_asked_for(jobs: list[tuple[int, int]], chance: object) -> None:
    world = World()
    wanted: set[Key] = set()
    learned = []
    for number, (names, ids) in enumerate(jobs):
        keys = [*named(f"{number}-", names), *(UUID(int=number * 10_000 + each + 1) for each in range(ids))]
        wanted.update(keys)
        learned.append(world.learning.learn(keys))
        if world.answers and chance.random() < 0.5:  # type: ignore[attr-defined]
            world.answer()
    while world.answers:
        assert len(world.answers) <= UNDER_WAY
        world.answer()
    assert all(each.called for each in learned)
    assert {key for keys in world.asked for key in keys} == wanted
    assert all(len(keys) <= AT_ONCE for keys in world.asked)
    assert all(len({type(key) for key in keys}) == 1 for keys in world.asked), "either names or ids"


def test_who_asks_while_the_upstream_is_lost_hears_of_it() -> None:
    world = World()
    lost, other = world.learning.learn(named("a", 2_000)), world.learning.learn(["b"])
    while world.answers:
        world.answers.pop(0).errback(LinkError("down"))
    for each in lost, other:
        with pytest.raises(LinkError):
            result(each)
    again = world.learning.learn(["b"])
    world.answer()
    assert again.called
