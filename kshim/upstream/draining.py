"""Drains this kshim before it ends: hands its shards and its clients over to the other processes.

The other processes take the shards over while this one still answers. From then on it names them to its
clients in place of its own ports, and closes the connections one after the other, when nothing is in flight
on them: a client whose connection is closed asks for the brokers again, and connects to where they are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from twisted.internet.defer import Deferred

from kshim.control.commands import Command, Commands
from kshim.storage.clock import TimerClock, after

if TYPE_CHECKING:
    from kshim.network.connection import Connection
    from kshim.upstream.interfaces import GroupShards

logger = logging.getLogger(__name__)

STEP_S = 0.05
CLOSED_IN_S = 1.0
"""Within so long all connections are asked to end, a part of them in each step."""
DRAINS = "this kshim hands over its groups and its clients, as it is to end"


class Drained(NamedTuple):
    """What has become of the clients."""

    handed_over: bool
    """False if no other process was there to take over."""
    connections: int
    """The number of connections that were closed."""
    left: int
    """The number of those that are still open."""


class Draining:
    """Drains once; who asks again waits for the same end."""

    def __init__(
        self,
        clock: TimerClock,
        shards: GroupShards,
        connections: Callable[[], Iterable[Connection]],
        timeout_s: float,
    ) -> None:
        """connections: returns the open connections of clients. timeout_s: limit for handing them over."""
        self._clock = clock
        self._shards = shards
        self._connections = connections
        self._timeout_s = timeout_s
        self._waiting: list[Deferred[Drained]] = []
        self._drained: Drained | None = None
        self.has_begun = False

    def commands(self) -> Commands:
        return {"drain": Command(self.command)}

    async def command(self) -> list[object]:
        """Drain; return whether it was handed over, and the numbers of closed and of open connections."""
        return list(await self.drain())

    def drain(self) -> Deferred[Drained]:
        """Fires when the shards and the connections are handed over, or time is over."""
        drained: Deferred[Drained] = Deferred()
        if self._drained is not None:
            drained.callback(self._drained)
            return drained
        self._waiting.append(drained)
        if not self.has_begun and self._shards.fellows():
            self.has_begun = True
            Deferred.fromCoroutine(self._drain()).addBoth(self._tell)
        elif not self.has_begun:
            self._tell(Drained(False, 0, len(list(self._connections()))))
        return drained

    def _tell(self, result: object) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.callback(result)  # type: ignore[arg-type]

    async def _drain(self) -> Drained:
        logger.info("hands over its shards and its clients, as it is to end")
        is_taken = await self._shards.hand_over()
        closed = await self._close_connections() if is_taken else 0
        self._drained = Drained(is_taken, closed, len(list(self._connections())))
        logger.info("has handed over its shards and %d connections; %d are left", closed, self._drained.left)
        return self._drained

    async def _close_connections(self) -> int:
        """Close all connections, and return how many."""
        until_s = self._clock.seconds() + self._timeout_s
        ending: set[Connection] = set()
        steps = max(1, round(CLOSED_IN_S / STEP_S))
        at_once = -(-len(list(self._connections())) // steps)
        while (found := list(self._connections())) and self._clock.seconds() < until_s:
            fresh = [each for each in found if each not in ending and not each.left_bytes]
            for each in fresh[: max(1, at_once)]:
                each.drain()
                ending.add(each)
            for each in ending.intersection(found):
                if not each.see().in_flight and not each.is_closing:
                    each.close()
            await after(self._clock, STEP_S)
        return len(ending)
