"""The reactor as kshim uses it. Twisted's own interfaces are zope's, which type checkers cannot follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from kshim.storage.clock import TimerClock

if TYPE_CHECKING:
    from twisted.internet.address import IPv4Address, IPv6Address
    from twisted.internet.defer import Deferred
    from twisted.python.threadpool import ThreadPool


class Port(Protocol):
    """The part of Twisted's IListeningPort that kshim uses."""

    transport: Callable[..., object]
    """Makes the transport of a new connection."""

    def getHost(self) -> IPv4Address | IPv6Address: ...  # noqa: N802, Twisted's name
    def startReading(self) -> None: ...  # noqa: N802
    def stopReading(self) -> None: ...  # noqa: N802
    def stopListening(self) -> Deferred[None]: ...  # noqa: N802, Twisted's name


class FromThreads(Protocol):
    """The part of Twisted's IReactorFromThreads that kshim uses."""

    def callFromThread(self, callable: Callable[..., object], *args: object) -> None: ...  # noqa: N802


class Reactor(TimerClock, FromThreads, Protocol):
    """The part of Twisted's reactor that the server uses."""

    def listenTCP(  # noqa: N802, Twisted's name
        self, port: int, factory: object, backlog: int = 50, interface: str = ""
    ) -> Port: ...
    def listenUNIX(self, address: str, factory: object, *, mode: int) -> Port: ...  # noqa: N802
    def callWhenRunning(self, callable: Callable[..., object], *args: object) -> object: ...  # noqa: N802
    def addReader(self, reader: object) -> None: ...  # noqa: N802
    def getThreadPool(self) -> ThreadPool: ...  # noqa: N802
    def addSystemEventTrigger(  # noqa: N802
        self, phase: str, event: str, callable: Callable[..., object]
    ) -> object: ...
    def run(self, installSignalHandlers: bool = True) -> None: ...  # noqa: N803
    def stop(self) -> None: ...
