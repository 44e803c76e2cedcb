"""Members that leave are reported if they stay connected."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.task import Clock

from kshim.callers import RequestContext
from kshim.callers.context import Client, NamedMember
from kshim.configs.endpoint import Endpoint
from kshim.coordination.leavers import CLOSES_S, MOST, Leavers

AT = Endpoint("127.0.0.1", 9)
MEMBER = NamedMember("g", "m")


class World:
    def __init__(self) -> None:
        self.clock = Clock()
        self.reported: list[str] = []
        self.leavers = Leavers(self.clock, lambda report: self.reported.append(str(report)))

    def context(self, member: NamedMember | None = MEMBER) -> Any:
        client = Client("/10.0.0.7", AT, AT, member=member)
        return RequestContext(5, "billing", "/10.0.0.7", AT, client=client)


@pytest.fixture
def world() -> World:
    return World()


def test_a_client_that_closes_is_not_reported(world: World) -> None:
    context = world.context()
    world.leavers.left(context, "g", "m")
    world.clock.advance(CLOSES_S / 2)
    context.client.is_gone = True
    world.clock.advance(CLOSES_S)
    assert world.reported == []


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("", ": its program probably exceeded max.poll.interval.ms, or it unsubscribed"),
        ("consumer poll timeout has expired.", '; it said "consumer poll timeout has expired."'),
    ],
)
def test_a_client_that_stays_connected_is_reported(world: World, reason: str, words: str) -> None:
    world.leavers.left(world.context(), "g", "m", reason)
    world.clock.advance(CLOSES_S - 0.1)
    assert world.reported == []
    world.clock.advance(0.1)
    left = "group g: m (client billing at 10.0.0.7) left, but is still connected"
    assert world.reported == [left + words]


@pytest.mark.parametrize("member", [None, NamedMember("g", "other"), NamedMember("other", "m")])
def test_an_administrator_is_not_reported(world: World, member: NamedMember | None) -> None:
    world.leavers.left(world.context(member), "g", "m")
    world.clock.advance(CLOSES_S)
    assert world.reported == []


def test_there_is_a_limit(world: World) -> None:
    for _ in range(MOST + 5):
        world.leavers.left(world.context(), "g", "m")
    world.clock.advance(CLOSES_S)
    assert len(world.reported) == MOST
    world.leavers.left(world.context(), "g", "m")
    world.clock.advance(CLOSES_S)
    assert len(world.reported) == MOST + 1
