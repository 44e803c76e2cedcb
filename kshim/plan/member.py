"""What the processes of both protocols have in common: a poll loop, one connection, a start and an end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Final, NamedTuple, Protocol

from kshim.plan.broker import Broker
from kshim.plan.clock import Call, VirtualClock
from kshim.plan.ledger import Ledger
from kshim.plan.setting import Setting

CLIENT_ID: Final = "consumer"
"""All members have one client id, so their member ids are in no order, as in production."""


class World(NamedTuple):
    """What members are in."""

    clock: VirtualClock
    broker: Broker
    ledger: Ledger
    chance: Random


class Member(Protocol):
    """One process with one consumer. It lives from `start` to `close` or `crash`."""

    is_alive: bool
    """False as soon as it has ended: a program that is closed finishes first what it works on."""

    def start(self) -> None:
        """Subscribe, and poll."""

    def close(self) -> None:
        """Close the consumer as soon as the program comes back to its loop."""

    def crash(self) -> None:
        """It is gone, and says nothing."""


class Process(ABC):
    """The base of both kinds of members. `name` outlives a restart if the member is static."""

    def __init__(self, world: World, setting: Setting, name: str, instance_id: str | None) -> None:
        self.world, self.setting, self.name, self.instance_id = world, setting, name, instance_id
        self.is_alive = True
        self._phase_ms = world.chance.randrange(setting.processing_ms) if setting.processing_ms else 0
        self._calls: dict[str, Call] = {}
        self._asked: dict[int, Any] = {}
        """The requests under way, by token."""

    @property
    def now_ms(self) -> int:
        return self.world.clock.now_ms

    @property
    def owned(self) -> frozenset[int]:
        return self.world.ledger.holds(self.name)

    def start(self) -> None:
        self.world.ledger.starts(self.name, self.now_ms)
        self.begin()

    @abstractmethod
    def begin(self) -> None:
        """Join the group."""

    def close(self) -> None:
        self.at_next_poll(self._close)

    def crash(self) -> None:
        self.end()

    @abstractmethod
    def leave(self) -> None:
        """Say that it leaves, if clients do."""

    def end(self) -> None:
        """Consume no more, and hear no more."""
        self.is_alive = False
        for call in self._calls.values():
            call.cancel()
        self.world.ledger.ends(self.name, self.now_ms)
        for token, request in self._asked.items():
            self.world.broker.release(token, request)
        self._asked.clear()

    def gain(self, partitions: Iterable[int]) -> None:
        self.world.ledger.gains(self.name, partitions, self.now_ms)

    def lose(self, partitions: Iterable[int]) -> None:
        self.world.ledger.loses(self.name, partitions, self.now_ms)

    def at_next_poll(self, function: Callable[[], object]) -> None:
        """Call when the program polls next: at once, unless it works on records."""
        work_ms = self.setting.processing_ms
        self.call("poll", (self._phase_ms - self.now_ms) % work_ms if work_ms else 0, function)

    def call(self, what: str, delay_ms: int, function: Callable[[], object]) -> None:
        """Call in `delay_ms`, in place of what was to be called for the same purpose."""
        self.stop(what)
        self._calls[what] = self.world.clock.after(delay_ms, function)

    def stop(self, what: str) -> None:
        """Do not call what was to be called for this purpose."""
        call = self._calls.pop(what, None)
        if call is not None:
            call.cancel()

    def ask(self, version: int, request: Any, hear: Callable[[Any], object]) -> None:
        """Send a request. A member that has ended hears nothing."""

        def answered(answer: Any) -> None:
            if self._asked.pop(token, None) is not None:
                hear(answer)

        token = self.world.broker.ask(CLIENT_ID, version, request, answered)
        self._asked[token] = request

    def say(self, version: int, request: Any) -> None:
        """Send a request whose answer does not matter."""
        self.world.broker.ask(CLIENT_ID, version, request, lambda answer: None)

    def _close(self) -> None:
        self.leave()
        self.end()
