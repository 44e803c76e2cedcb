"""kshim asks brokers for their ApiVersions, one question at a time, and keeps the answers."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kshim.upstream.link import LinkError
from kshim.upstream.versions import AGAIN_S, KEPT_S, BrokerVersions
from schemas.messages.api_versions import ApiVersion, ApiVersionsResponse
from tests.api.harness import PENDING, collect, result


class Link:
    def __init__(self, newest: int) -> None:
        self.answered = ApiVersionsResponse(api_keys=(ApiVersion(max_version=newest),))

    def close(self) -> None: ...


class World:
    def __init__(self) -> None:
        self.clock = Clock()
        self.links: list[Deferred[Any]] = []
        self.versions = BrokerVersions(self.clock, self._connect)

    def _connect(self, node_id: int) -> Deferred[Any]:
        self.links.append(Deferred())
        return self.links[-1]

    def newest(self) -> Any:
        answer = result(self.versions.of(1))
        return answer if answer is PENDING else answer.api_keys[0].max_version


def test_many_that_ask_at_once_are_one_question() -> None:
    world = World()
    answers = [collect(world.versions.of(1)) for _ in range(5)]
    (link,) = world.links
    link.callback(Link(3))
    assert [len(each) for each in answers] == [1] * 5
    assert world.newest() == 3
    assert len(world.links) == 1
    collect(world.versions.of(2))
    assert len(world.links) == 2, "another broker may be of another version"


def test_an_old_answer_is_given_while_the_broker_is_asked_anew() -> None:
    world = World()
    collect(world.versions.of(1))
    world.links[0].callback(Link(3))
    world.clock.advance(KEPT_S)
    assert [world.newest() for _ in range(3)] == [3] * 3
    assert len(world.links) == 2
    world.links[1].callback(Link(4))
    assert world.newest() == 4
    world.clock.advance(KEPT_S)
    assert world.newest() == 4
    world.links[2].errback(LinkError("gone"))
    assert world.newest() == 4, "as long as there is no better one"


def test_a_broker_that_does_not_answer_is_not_asked_all_the_time() -> None:
    world = World()
    failed = collect(world.versions.of(1))
    world.links[0].errback(LinkError("gone"))
    assert len(failed) == 1
    with pytest.raises(LinkError):
        world.newest()
    assert len(world.links) == 1
    world.clock.advance(AGAIN_S)
    assert world.newest() is PENDING
    assert len(world.links) == 2


def test_another_broker_answers_for_one_that_does_not() -> None:
    world = World()
    first = collect(world.versions.of_first((1, 2)))
    world.links[0].errback(LinkError("gone"))
    world.links[1].callback(Link(4))
    (answer,) = first
    assert answer.api_keys[0].max_version == 4
    both = collect(world.versions.of_first((1, 3)))
    world.links[2].errback(LinkError("gone, too"))
    (failure,) = both
    assert "gone, too" in str(failure)
