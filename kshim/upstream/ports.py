"""The listening ports of kshim in front of an upstream: that of `listeners` plus the index of each broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.network.connection import Connection, Dispatch
from kshim.network.listeners import CannotListen, Listener, new_listeners
from kshim.network.places import Limits
from kshim.requests.once import Once
from kshim.requests.unread import Unread

ATTEMPTS = 20
"""How often free consecutive ports are searched for, for port 0."""
LAST_PORT = 65535


class Ports:
    """Opens ports, and knows those that were opened."""

    def __init__(self, config: Config, reactor: Any, unread: Unread, once: Once, limits: Limits) -> None:
        self._config = config
        self._reactor = reactor
        self._unread = unread
        self._once = once
        self._limits = limits
        self._first = config.listeners
        self.listeners: dict[int, Listener] = {}
        """By the node id of the broker."""

    def open(self, node_id: int, index: int, answer: Dispatch, new: Callable[..., Connection]) -> Listener:
        """Accept connections for a broker; each is made by `new`. Raises CannotListen."""
        address = self._address(index)
        config = replace(self._config, node_id=0, advertised_listeners=self._advertised(index))
        answers, limits = {0: answer}, lambda _: self._limits
        (listener,) = new_listeners(answers, config, self._reactor, self._unread, self._once, limits).values()
        listener.makes(new)
        found = listener.open(address)
        if self._first.port == 0:
            self._first = Endpoint(found.host, found.port - index)
        self.listeners[node_id] = listener
        return listener

    def _address(self, index: int) -> Endpoint:
        first = self._first
        return Endpoint(first.host, _port(first, index) if first.port else 0)

    def _advertised(self, index: int) -> Endpoint | None:
        first = self._config.advertised_listeners
        return first and Endpoint(first.host, _port(first, index))


def _port(first: Endpoint, index: int) -> int:
    port = first.port + index
    if port > LAST_PORT:
        raise CannotListen(f"cannot listen at port {port}: the last port is {LAST_PORT}")
    return port
