"""The commands about time: move it ahead, hold it, let it go on.

The clients' own clocks are not steered. So when time is moved ahead, each member with a connected client
counts as having sent its heartbeats meanwhile, unless the caller asks for silence. And while time is held,
answers that a client expects within moments are still given.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, TypedDict

from twisted.internet.defer import Deferred

from kshim.callers import Client
from kshim.control.clock import SteeredClock
from kshim.control.commands import Command, Commands, SteeringError
from kshim.storage.clock import Call
from kshim.turns.slices import others_first

if TYPE_CHECKING:
    from kshim.storage.reactor import Reactor


PULSE_S = 0.05
"""How often, while time is held, answers are given that clients expect within moments."""
LONGEST_ADVANCE_MS = 100 * 365 * 24 * 3600 * 1000
SETTLE_S = 60.0
"""Longest time that `advance` waits for the work that has come due."""

logger = logging.getLogger(__name__)


class Now(TypedDict):
    """The server's time."""

    now_ms: int
    """Milliseconds since 1970."""
    ahead_ms: int
    """How far `now_ms` is ahead of the machine's clock."""
    is_held: bool


class Behind(Protocol):
    """A part of the server that may have work to do that is due."""

    @property
    def is_behind(self) -> bool: ...


class GroupsInTime(Protocol):
    """The part of the group coordinator that steering time needs; see `GroupRuntime`."""

    def keep_sessions(self, members: Iterable[tuple[str, str]], by_ms: int) -> None: ...
    def hasten(self) -> None: ...


class TimeSteering:
    """Carries out the commands of `kshim clock`."""

    def __init__(
        self,
        clock: SteeredClock,
        reactor: Reactor,
        groups: GroupsInTime,
        coordinators: Behind,
        clients: Callable[[], Iterable[Client]],
    ) -> None:
        """coordinators: all of them together. clients: returns the connected clients."""
        self._clock = clock
        self._reactor = reactor
        self._groups = groups
        self._workers = (clock, coordinators)
        self._clients = clients
        self._pulse: Call | None = None

    def commands(self) -> Commands:
        return {
            "clock-now": Command(self.now),
            "clock-advance": Command(self.advance, (int, bool)),
            "clock-hold": Command(self.hold),
            "clock-resume": Command(self.resume),
        }

    def now(self) -> Now:
        """Return the server's time."""
        clock = self._clock
        return Now(
            now_ms=int(clock.seconds() * 1000),
            ahead_ms=round(clock.ahead_s * 1000),
            is_held=clock.is_held,
        )

    def advance(self, by_ms: int, silent: bool) -> Deferred[Now]:
        """Move time ahead. Fires when all work that came due is done, or after SETTLE_S.

        silent: True if no member counts as having sent heartbeats meanwhile, even if its client is connected.
        Raises SteeringError.
        """
        if not 0 <= by_ms <= LONGEST_ADVANCE_MS:
            raise SteeringError("time can be moved ahead by 0 to 100 years, and never back")
        return Deferred.fromCoroutine(self._advance(by_ms, silent))

    async def _advance(self, by_ms: int, silent: bool) -> Now:
        await others_first(self._reactor)  # first notice which clients have disconnected
        if not silent:
            members = [client.member for client in self._clients() if client.member is not None]
            connected = {(member.group_id, member.member_id) for member in members}
            self._groups.keep_sessions(connected, by_ms)
        self._clock.advance(by_ms / 1000)
        logger.info("time was moved ahead by %s", timedelta(milliseconds=by_ms))
        until_s = self._reactor.seconds() + SETTLE_S
        while any(each.is_behind for each in self._workers) and self._reactor.seconds() < until_s:
            await others_first(self._reactor)
        return self.now()

    def hold(self) -> Now:
        """Stop the server's time."""
        if not self._clock.is_held:
            self._clock.hold()
            self._beat()
            logger.info("time is held")
        return self.now()

    def resume(self) -> Now:
        """Make time go on from where it was held."""
        if self._clock.is_held:
            self._clock.resume()
            self.stop()
            logger.info("time goes on")
        return self.now()

    def stop(self) -> None:
        """Stop the pulse, because time goes on or the server stops."""
        if self._pulse is not None:
            self._pulse.cancel()
            self._pulse = None

    def _beat(self) -> None:
        self._pulse = self._reactor.callLater(PULSE_S, self._beat)
        self._groups.hasten()
