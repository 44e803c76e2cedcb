"""The markers of transactions are written a few at a time, each transaction in its turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kshim.coordination.markers import (
    MARKERS_AT_ONCE,
    MARKERS_IN_TURN,
    MOST_UNDER_WAY,
    RETRY_MS,
    Markers,
    MarkerTurns,
)
from schemas.error_code import ErrorCode

Place = tuple[str, str, int]


class World:
    """Partitions whose markers become durable when the test says so."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.turns = MarkerTurns(self.clock)
        self.under_way: dict[Place, Deferred[ErrorCode]] = {}
        self.is_wanted = True

    def end(self, name: str, indexes: Iterable[int]) -> Deferred[None]:
        """Write the markers of transaction `name`; fires when they are written."""

        def write(topic: str, index: int) -> Deferred[ErrorCode]:
            return self.under_way.setdefault((name, topic, index), Deferred())

        partitions = {("topic", index) for index in indexes}
        markers = Markers(name, partitions, write, lambda: self.is_wanted, self.turns)
        self.turns.add(markers)
        return markers.done

    def settle(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """All markers that are under way become durable, or fail."""
        under_way, self.under_way = self.under_way, {}
        for done in under_way.values():
            done.callback(error)

    def turn(self) -> None:
        """One turn of the reactor: what is due now, and not what that leaves for the next turn."""
        due = [call for call in self.clock.getDelayedCalls() if call.getTime() <= self.clock.seconds()]
        for call in due:
            function, arguments = call.func, call.args
            call.cancel()
            function(*arguments)

    def written(self, name: str) -> list[int]:
        return [index for transaction, _, index in self.under_way if transaction == name]


@pytest.fixture
def world() -> World:
    return World()


def test_few_markers_are_written_at_once_in_the_order_of_their_partitions(world: World) -> None:
    done = world.end("t", (2, 0, 1))
    assert world.written("t") == [0, 1, 2]
    world.settle()
    assert done.called


def test_a_transaction_without_partitions_is_done(world: World) -> None:
    assert world.end("t", ()).called


def test_many_markers_are_written_in_several_turns_and_wait_for_the_disk(world: World) -> None:
    done = world.end("t", range(2 * MOST_UNDER_WAY))
    found = []
    for _ in range(2 + MOST_UNDER_WAY // MARKERS_IN_TURN):
        found.append(len(world.under_way))
        world.turn()
    assert found[:2] == [MARKERS_IN_TURN, 2 * MARKERS_IN_TURN]
    assert found[-1] == MOST_UNDER_WAY
    world.settle()
    assert 0 < len(world.under_way) <= MARKERS_IN_TURN
    while world.under_way:
        assert not done.called
        world.settle()
        world.turn()
    assert done.called


def test_a_small_transaction_does_not_wait_for_a_large_one(world: World) -> None:
    world.end("large", range(10 * MARKERS_IN_TURN))
    small = world.end("small", range(3))
    world.turn()
    assert len(world.written("large")) < 2 * MARKERS_IN_TURN
    assert world.written("small") == [0, 1, 2]
    world.settle()
    assert small.called


def test_the_markers_of_many_transactions_share_a_turn(world: World) -> None:
    for number in range(2 * MARKERS_IN_TURN):
        world.end(f"t{number}", (0,))
    assert len(world.under_way) == MARKERS_IN_TURN
    world.turn()
    assert len(world.under_way) == 2 * MARKERS_IN_TURN


def test_a_marker_that_is_not_written_is_tried_again_and_holds_no_other(world: World) -> None:
    done = world.end("t", range(MARKERS_AT_ONCE))
    first = world.under_way.pop(("t", "topic", 0))
    first.callback(ErrorCode.KAFKA_STORAGE_ERROR)
    world.settle()
    assert (done.called, world.under_way) == (False, {})
    world.clock.advance(RETRY_MS / 1000)
    assert world.written("t") == [0]
    world.settle()
    assert done.called


@pytest.mark.parametrize("how", [World.turn, World.settle])
def test_markers_that_are_not_wanted_any_more_are_not_written(
    world: World, how: Callable[[World], None]
) -> None:
    done = world.end("t", range(2 * MARKERS_IN_TURN))
    world.is_wanted = False
    how(world)
    assert len(world.under_way) in (0, MARKERS_IN_TURN)
    world.clock.advance(RETRY_MS / 1000)
    assert not done.called
    assert len(world.under_way) in (0, MARKERS_IN_TURN)


def test_one_that_is_tried_again_waits_until_fewer_are_under_way(world: World) -> None:
    done = world.end("t", range(MOST_UNDER_WAY + 1))
    for _ in range(MOST_UNDER_WAY // MARKERS_IN_TURN):
        world.turn()
    world.under_way.pop(("t", "topic", 0)).callback(ErrorCode.KAFKA_STORAGE_ERROR)
    world.turn()
    assert len(world.under_way) == MOST_UNDER_WAY
    world.clock.advance(RETRY_MS / 1000)
    assert len(world.under_way) == MOST_UNDER_WAY
    world.settle()
    assert world.written("t") == [0]
    world.settle()
    assert done.called
