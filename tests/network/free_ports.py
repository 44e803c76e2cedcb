"""A reactor with ports in memory, some of which are taken."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

from twisted.internet.error import CannotListenError
from twisted.internet.testing import MemoryReactorClock

from kshim.configs.endpoint import Endpoint


class Port:
    def __init__(self, reactor: Reactor, address: Endpoint) -> None:
        self._reactor, self._address = reactor, address
        reactor.open.append(address.port)

    def getHost(self) -> Endpoint:  # noqa: N802
        return self._address

    def stopListening(self) -> None:  # noqa: N802
        self._reactor.open.remove(self._address.port)


class Reactor(MemoryReactorClock):
    """Some ports are taken; port 0 gives the next of `free`."""

    def __init__(self, *taken: int, free: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.taken, self.free = set(taken), list(free)
        self.open: list[int] = []
        self.factories: list[Any] = []

    def listenTCP(self, port: int, factory: Any, backlog: int = 50, interface: str = "") -> Any:  # noqa: N802
        port = port or self.free.pop(0)
        if port in self.taken or port in self.open:
            raise CannotListenError(interface, port, OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE)))
        self.factories.append(factory)
        return Port(self, Endpoint(interface, port))

    def listenUNIX(self, address: str, factory: Any, *, mode: int) -> Any:  # noqa: N802
        """A Unix socket counts as port 0."""
        return Port(self, Endpoint(address, 0))

    def callFromThread(self, function: Callable[..., object], *arguments: object) -> None:  # noqa: N802
        """Call the function at once, on that thread."""
        function(*arguments)
