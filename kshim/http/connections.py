"""The JSON of connections: from where clients connect, with which software, and what they wait for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypedDict

from kshim.http.answers import Answer, Asked, listing
from kshim.http.facts import Facts
from kshim.turns.slices import Slices

ROW_US = 20
MOST_CLIENT_ID = 1_000
"""Most characters of a client id that are shown."""


class ShownConnection(TypedDict):
    """A client's connection."""

    broker: int
    listener: str
    principal: str
    address: str
    client_id: str
    software: str | None
    state: str
    in_flight: int
    held_bytes: int
    throttled_ms: int
    idle_ms: int


async def connections(facts: Facts, asked: Asked) -> Answer:
    """GET /connections"""
    return listing("connections", rows(facts, asked.slices))


async def rows(facts: Facts, slices: Slices) -> AsyncIterator[ShownConnection]:
    """One row for each connection of a client, broker by broker."""
    for node_id, listener in facts.listeners.items():
        for connection in list(listener.connections):
            await slices.spend(ROW_US)
            seen = connection.see()
            yield {
                "broker": node_id,
                "listener": seen.client.listener_name,
                "principal": str(seen.client.principal),
                "address": str(seen.client.address),
                "client_id": seen.client.client_id[:MOST_CLIENT_ID],
                "software": seen.client.software or None,
                "state": seen.state.name.capitalize(),
                "in_flight": seen.in_flight,
                "held_bytes": seen.held_bytes,
                "throttled_ms": max(0, int(seen.throttled_s * 1000)),
                "idle_ms": max(0, int((facts.clock.seconds() - seen.active_at) * 1000)),
            }
