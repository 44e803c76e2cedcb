"""The commands about time: their answers, the members that they spare, and what they wait for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kshim.callers import Client
from kshim.configs.endpoint import Endpoint
from kshim.control.clock import SteeredClock
from kshim.control.commands import SteeringError, run
from kshim.control.time import PULSE_S, TimeSteering
from schemas.messages.heartbeat import HeartbeatRequest

START_MS = 1_700_000_000_000
HERE = Endpoint("127.0.0.1", 9092)


class Groups:
    """Has `due` turns of work once time was moved ahead."""

    def __init__(self) -> None:
        self.kept: list[tuple[set[tuple[str, str]], int]] = []
        self.hastened = 0
        self.due = 0

    @property
    def is_behind(self) -> bool:
        self.due -= 1
        return self.due >= 0

    def keep_sessions(self, members: Iterable[tuple[str, str]], by_ms: int) -> None:
        self.kept.append((set(members), by_ms))

    def hasten(self) -> None:
        self.hastened += 1


class Steered:
    def __init__(self) -> None:
        self.reactor = Clock()
        self.reactor.advance(START_MS / 1000)
        self.clock = SteeredClock(self.reactor)
        self.groups = Groups()
        self.clients = [Client("/127.0.0.1", HERE, HERE) for _ in range(3)]
        self.steering = TimeSteering(self.clock, self.reactor, self.groups, self.groups, lambda: self.clients)

    def ask(self, name: str, *arguments: Any) -> Any:
        """The answer to a command; None if there is none yet."""
        answer = run(self.steering.commands(), name, list(arguments))
        if not isinstance(answer, Deferred):
            return answer
        brought: list[Any] = []
        answer.addCallback(brought.append)
        for _ in range(3):
            self.reactor.advance(0)
        return brought[0] if brought else None


@pytest.fixture
def steered() -> Steered:
    return Steered()


def test_time_is_told(steered: Steered) -> None:
    assert steered.ask("clock-now") == {"now_ms": START_MS, "ahead_ms": 0, "is_held": False}
    ahead = {"now_ms": START_MS + 1500, "ahead_ms": 1500, "is_held": False}
    assert steered.ask("clock-advance", 1500, False) == ahead
    assert steered.ask("clock-hold") == {**ahead, "is_held": True}
    steered.reactor.advance(2)
    assert steered.ask("clock-now") == {"now_ms": START_MS + 1500, "ahead_ms": -500, "is_held": True}
    assert steered.ask("clock-resume") == {"now_ms": START_MS + 1500, "ahead_ms": -500, "is_held": False}


@pytest.mark.parametrize("by_ms", [-1, 10**14])
def test_time_never_goes_back_nor_out_of_range(steered: Steered, by_ms: int) -> None:
    with pytest.raises(SteeringError, match="0 to 100 years"):
        steered.ask("clock-advance", by_ms, False)


def test_members_whose_clients_are_connected_are_spared(steered: Steered) -> None:
    steered.clients[0].member = HeartbeatRequest(group_id="g", generation_id=1, member_id="a")
    steered.clients[2].member = HeartbeatRequest(group_id="h", generation_id=1, member_id="b")
    steered.ask("clock-advance", 60_000, False)
    assert steered.groups.kept == [({("g", "a"), ("h", "b")}, 60_000)]
    steered.ask("clock-advance", 60_000, True)
    assert len(steered.groups.kept) == 1


def test_the_answer_waits_until_all_that_came_due_is_done(steered: Steered) -> None:
    steered.groups.due = 30
    assert steered.ask("clock-advance", 1, False) is not None
    assert steered.groups.due < 0


def test_clients_do_not_wait_while_time_is_held(steered: Steered) -> None:
    for _ in range(2):
        steered.ask("clock-hold")
    steered.reactor.pump([PULSE_S] * 3)
    assert steered.groups.hastened == 4
    steered.ask("clock-resume")
    steered.reactor.pump([PULSE_S] * 3)
    assert steered.groups.hastened == 4
    assert steered.reactor.getDelayedCalls() == []


def test_a_server_that_stops_looks_after_nobody(steered: Steered) -> None:
    steered.ask("clock-hold")
    steered.steering.stop()
    assert steered.reactor.getDelayedCalls() == []
