"""Names may stand for new topics: which requests wait for the answer, and how long."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kshim.upstream.confirming import FRESH_S, PATIENCE_S, Confirming
from kshim.upstream.link import LinkError
from tests.api.harness import result
from tests.upstream.known_topics import A, B, Upstream


class World:
    """An upstream with one topic, which is known."""

    def __init__(self) -> None:
        self.upstream = Upstream()
        self.clock = self.upstream.clock
        self.upstream.topics["a"] = A, 1
        result(self.upstream.known.learn(["a"]))
        self.upstream.names_asked()
        self.confirming = Confirming(self.upstream.known)

    def know(self, *keys: Any, age_s: float = FRESH_S) -> Deferred[None]:
        waits = self.confirming.know(keys, age_s)
        assert waits is not None
        return waits


@pytest.fixture
def world() -> World:
    return World()


def test_what_was_asked_for_lately_is_not_asked_again(world: World) -> None:
    assert world.confirming.know(["a", A]) is None
    world.clock.advance(FRESH_S)
    assert result(world.know("a")) is None
    assert world.upstream.names_asked() == ["a"]
    assert world.confirming.know(["a", A]) is None


def test_a_read_asks_always(world: World) -> None:
    for _ in range(2):
        assert result(world.know("a", age_s=0)) is None
    assert world.upstream.names_asked() == ["a", "a"]


@pytest.mark.parametrize("by_id", [False, True])
def test_a_topic_that_was_made_again_is_known_when_that_fires(world: World, *, by_id: bool) -> None:
    world.clock.advance(FRESH_S)
    world.upstream.topics["a"] = B, 1
    result(world.know(A if by_id else "a"))
    assert world.upstream.known.id_of("a") == B
    assert world.upstream.deleted == ["a"]


def test_who_comes_while_it_is_asked_waits_for_the_next_answer(world: World) -> None:
    """The one under way may have been given before."""
    world.clock.advance(FRESH_S)
    waiting = world.upstream.waiting = []
    first, second, third = world.know("a"), world.know("a"), world.know("a")
    assert len(waiting) == 1
    waiting.pop().callback(None)
    assert (first.called, second.called, third.called) == (True, False, False)
    waiting.pop().callback(None)
    assert second.called
    assert third.called
    assert waiting == []


def test_nobody_waits_for_long(world: World) -> None:
    world.clock.advance(FRESH_S)
    waiting = world.upstream.waiting = []
    first, second = world.know("a"), world.know("a")
    world.clock.advance(PATIENCE_S)
    assert first.called
    assert second.called
    assert world.confirming.know(["a"]) is None, "until it answers"
    waiting.pop().callback(None)
    world.clock.advance(FRESH_S)
    assert not world.know("a").called
    assert len(waiting) == 1


def test_an_upstream_that_cannot_be_asked_keeps_nobody_waiting(world: World) -> None:
    world.clock.advance(FRESH_S)
    world.upstream.is_down = True
    assert result(world.know("a")) is None
    world.know("b").addErrback(lambda failure: failure.trap(LinkError))


def test_new_topics_are_learned_beside(world: World) -> None:
    world.clock.advance(FRESH_S)
    world.upstream.topics["b"] = B, 1
    assert result(world.know("a", "b")) is None
    assert sorted(map(str, world.upstream.names_asked())) == ["a", "b"]
    assert world.upstream.known.id_of("b") == B
    assert not world.clock.getDelayedCalls()
