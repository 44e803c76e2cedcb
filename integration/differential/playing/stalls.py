"""How long a server stood still: a history whose time-outs decide proves nothing while it does.

A watch asks one server for nothing in particular, again and again, and keeps how long the answers took. That
is the time of the whole way: of this process, of the machine, and of the server.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable

from integration.differential.playing.asking import Address, Connection
from schemas.api_key import ApiKey
from schemas.header import RequestHeader
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.registry import encode_request

EVERY_S = 0.02
NOTABLE_S = 0.05
QUESTION = encode_request(
    RequestHeader(api_key=ApiKey.HEARTBEAT, api_version=0, correlation_id=0, client_id="watch"),
    HeartbeatRequest(group_id="watch", generation_id=1, member_id="nobody"),
)


class Watch:
    """slow: for every notable answer when it was asked for and when it came, in the event loop's seconds."""

    def __init__(self) -> None:
        self.slow: list[tuple[float, float]] = []

    def longest_s(self, began_s: float, ended_s: float) -> float:
        """The longest standstill between two moments."""
        return max((b - a for a, b in self.slow if a < ended_s and b > began_s), default=0)

    async def keep(self, address: Address) -> None:
        loop = asyncio.get_running_loop()
        connection = await Connection.open(address)
        try:
            while True:
                asked_s = loop.time()
                answered = asyncio.Event()
                connection.send(QUESTION, lambda _, answered=answered: answered.set())  # type: ignore[misc]
                await answered.wait()
                await asyncio.sleep(EVERY_S)
                if loop.time() - EVERY_S - asked_s > NOTABLE_S:
                    self.slow.append((asked_s, loop.time()))
        finally:
            connection.close()


@contextlib.asynccontextmanager
async def watched(addresses: Iterable[Address]) -> AsyncIterator[list[Watch]]:
    """A watch for each address, kept meanwhile."""
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
