"""Measures how long a server stood still: a history that depends on time-outs proves nothing meanwhile.

A watch sends one server a trivial request, again and again, and records slow answers. It measures the whole
way: this process, the machine and the server.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable

from integration.differential.playing.asking import Address, Connection
from kshim.testing.wire import payload
from schemas.messages.heartbeat import HeartbeatRequest

EVERY_S = 0.02
NOTABLE_S = 0.05
QUESTION = payload(0, HeartbeatRequest(group_id="watch", generation_id=1, member_id="nobody"))


class Watch:
    """Watches one server."""

    def __init__(self) -> None:
        self.slow: list[tuple[float, float]] = []
        """When each slow request was sent and answered, in the event loop's seconds."""

    def longest_s(self, began_s: float, ended_s: float) -> float:
        """The longest standstill that overlaps the time between two moments."""
        return max((b - a for a, b in self.slow if a < ended_s and b > began_s), default=0)

    async def keep(self, address: Address) -> None:
        loop = asyncio.get_running_loop()
        connection = await Connection.open(address)
        try:
            while True:
                asked_s = loop.time()
                answered = asyncio.Event()
                connection.send(QUESTION, lambda _, answered=answered: answered.set())
                await answered.wait()
                await asyncio.sleep(EVERY_S)
                if loop.time() - EVERY_S - asked_s > NOTABLE_S:
                    self.slow.append((asked_s, loop.time()))
        finally:
            connection.close()


@contextlib.asynccontextmanager
async def watched(addresses: Iterable[Address]) -> AsyncIterator[list[Watch]]:
    """A watch for each address, running until the block ends."""
    watches, tasks = [], []
    for address in addresses:
        watches.append(watch := Watch())
        tasks.append(asyncio.create_task(watch.keep(address)))
    try:
        yield watches
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
