"""A kshim hands its shards and its clients over before it ends."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kshim.upstream.draining import CLOSED_IN_S, STEP_S, Drained, Draining
from tests.api.harness import result

TIMEOUT_S = 5.0


class Connection:
    """One of a client, with requests in flight."""

    left_bytes = 0
    is_closing = False

    def __init__(self, in_flight: int = 0) -> None:
        self.in_flight = in_flight
        self.drained = self.closed = False

    def drain(self) -> None:
        assert not self.drained
        self.drained = True

    def see(self) -> Connection:
        return self

    def close(self) -> None:
        assert self.drained
        assert not self.in_flight
        self.closed = True


class World:
    def __init__(self, *connections: Connection, is_alone: bool = False) -> None:
        self.clock = Clock()
        self.all = list(connections)
        self.taken: Deferred[bool] = Deferred()
        self.is_alone, self.asked = is_alone, 0
        shards: Any = self
        self.draining = Draining(self.clock, shards, self.open, TIMEOUT_S)

    def open(self) -> Any:
        return [each for each in self.all if not each.closed]

    def fellows(self) -> list[int]:
        return [] if self.is_alone else [1, 2]

    def hand_over(self) -> Deferred[bool]:
        self.asked += 1
        return self.taken

    def pass_s(self, for_s: float) -> None:
        self.clock.pump([STEP_S] * round(for_s / STEP_S))


def test_connections_are_closed_one_after_the_other_once_the_shards_are_taken() -> None:
    world = World(*(Connection() for _ in range(100)))
    drained = world.draining.drain()
    world.pass_s(1)
    assert len(world.open()) == 100
    world.taken.callback(True)
    world.pass_s(CLOSED_IN_S / 2)
    assert 40 <= len(world.open()) <= 60
    world.pass_s(CLOSED_IN_S)
    assert result(drained) == Drained(True, 100, 0)
    assert not world.clock.getDelayedCalls()


def test_what_is_in_flight_is_answered_first() -> None:
    busy, halfway = Connection(in_flight=1), Connection()
    halfway.left_bytes = 10
    world = World(busy, halfway)
    world.taken.callback(True)
    drained = world.draining.drain()
    world.pass_s(1)
    assert (busy.drained, busy.closed) == (True, False)
    assert not halfway.drained, "a request is arriving"
    busy.in_flight = halfway.left_bytes = 0
    world.pass_s(1)
    assert result(drained) == Drained(True, 2, 0)


def test_who_does_not_come_to_an_end_is_left() -> None:
    world = World(Connection(in_flight=1), Connection())
    world.taken.callback(True)
    drained = world.draining.drain()
    world.pass_s(TIMEOUT_S + 1)
    assert result(drained) == Drained(True, 2, 1)


def test_a_client_that_comes_meanwhile_is_sent_on() -> None:
    world = World(Connection())
    world.taken.callback(True)
    drained = world.draining.drain()
    world.all.append(Connection())
    world.pass_s(1)
    assert result(drained) == Drained(True, 2, 0)


@pytest.mark.parametrize("is_alone", [True, False])
def test_nobody_is_sent_away_where_nobody_takes_over(*, is_alone: bool) -> None:
    world = World(Connection(), is_alone=is_alone)
    world.taken.callback(False)
    drained = world.draining.drain()
    assert result(drained) == Drained(False, 0, 1)
    assert world.draining.has_begun is not is_alone
    assert world.asked == (not is_alone)


def test_it_is_done_once() -> None:
    world = World(Connection())
    first, second = world.draining.drain(), world.draining.drain()
    assert not first.called
    world.taken.callback(True)
    world.pass_s(1)
    for drained in (first, second, world.draining.drain()):
        assert result(drained) == Drained(True, 1, 0)
    assert world.asked == 1


def test_the_command_tells_the_numbers() -> None:
    world = World(is_alone=True)
    assert result(Deferred.fromCoroutine(world.draining.command())) == [False, 0, 0]
