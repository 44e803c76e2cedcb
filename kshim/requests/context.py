"""One request: who sent it, over which listener, and how it is refused without an answer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from kshim.configs.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class Client:
    """The other end of a connection.

    host: as Java prints an address, "/127.0.0.1". address: the address and port it called from, for the log.
    advertised: where it should connect.
    """

    host: str
    address: Endpoint
    advertised: Endpoint


class Signal:
    """Something that happens once. Who watches after it has fired is called at once."""

    __slots__ = ("_watchers", "fired")

    def __init__(self) -> None:
        self.fired = False
        self._watchers: list[Callable[[], object]] | None = None

    def watch(self, callback: Callable[[], object]) -> None:
        if self.fired:
            callback()
        elif self._watchers is None:
            self._watchers = [callback]
        else:
            self._watchers.append(callback)

    def fire(self) -> None:
        if self.fired:
            return
        self.fired = True
        watchers, self._watchers = self._watchers, None
        for callback in watchers or ():
            callback()


@dataclass(slots=True)
class RequestContext:
    """One request's caller.

    client_id: "" where the client sent null. client_host: as Java prints an address, "/127.0.0.1".
    advertised: where this client should connect: the advertised listener, else the address at which its
    connection arrived. hurry: fires when another request is behind this one on the connection, or the
    connection is lost; a parked Fetch then finishes at once, because replies leave in request order.
    node_id: of the broker that was asked.
    """

    api_version: int
    client_id: str
    client_host: str
    advertised: Endpoint
    principal: str = "User:ANONYMOUS"
    hurry: Signal = field(default_factory=Signal)
    node_id: int = 0


class Refused(Exception):
    """A request gets no answer, and its connection is closed; str() is the line for the log.

    level: logging.WARNING where the client sent what cannot be served, logging.ERROR where the fault is ours;
    then the cause's traceback is logged too.
    """

    def __init__(self, why: str, level: int = logging.WARNING) -> None:
        super().__init__(why)
        self.level = level
