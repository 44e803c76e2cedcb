"""Ports for servers that a test may stop and start again at the same address.

Ephemeral ports are no use: while a server is down, an outgoing connection may get its port. A *slot* is a run
of ports below the ephemeral ones. A process that holds a slot's first port may use the other ones for its
server.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable

WIDTH = 8
SLOTS = range(12_000, 20_000, WIDTH)
"""The first ports of the slots. The controllers of `integration/apache_kafka` have ports above this range."""


class Slot:
    """A slot. It is held as long as this object lives."""

    def __init__(self) -> None:
        for first in random.sample(SLOTS, len(SLOTS)):
            held = _bound(first)
            if held is not None and _are_free(range(first + 1, first + WIDTH)):
                self._held = held
                self.port = first + 1
                """The first port for the server and its brokers."""
                return
            if held is not None:
                held.close()
        raise AssertionError("no free ports")


def _bound(port: int) -> socket.socket | None:
    """A socket that holds a port, so that nobody else can use it; None if the port is taken."""
    holder = socket.socket()
    try:
        holder.bind(("127.0.0.1", port))
    except OSError:
        holder.close()
        return None
    return holder


def _are_free(ports: Iterable[int]) -> bool:
    for port in ports:
        probe = _bound(port)
        if probe is None:
            return False
        probe.close()
    return True
