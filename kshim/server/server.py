"""Starts a server in one order, over either backend: backend, ports, control socket, HTTP. Stops it in
reverse.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Generic

from twisted.internet.defer import Deferred, DeferredLock

from kshim import __version__
from kshim.control.commands import Commands, MadeLater
from kshim.control.socket import ControlSocket, control_path
from kshim.network.listeners import CannotListen
from kshim.server import StartError
from kshim.server.ports import Addresses, B, Ports
from kshim.storage.interfaces import StorageError

if TYPE_CHECKING:
    from kshim.configs.endpoint import Endpoint
    from kshim.http.listener import HttpListener
    from kshim.server.backend import Backend
    from kshim.server.parts import Parts

logger = logging.getLogger(__name__)


class Server(Generic[B]):
    """All brokers of one process. Started once, stopped once."""

    def __init__(self, parts: Parts, backend: Backend[B]) -> None:
        """backend: made of the same parts."""
        self._parts = parts
        self._backend = backend
        self._ports: Ports[B] | None = None
        self._http: HttpListener | None = None
        self.http_address: Endpoint | None = None
        """The page's address; None if it is not served."""
        self._stop_lock = DeferredLock()
        self._is_stopped = False

    def start(self) -> Deferred[Addresses]:
        """Start the server. Fires with the brokers' addresses once connections are accepted. Errbacks
        StartError; then nothing is left open.
        """
        return Deferred.fromCoroutine(self._start())

    async def _start(self) -> Addresses:
        try:
            ports = await self._open_ports()
            self._open_control(ports)
        except (StorageError, CannotListen, StartError) as error:
            await self.stop()
            raise StartError(str(error)) from error
        self._backend.begin()
        addresses = ports.addresses()
        logger.info("kshim %s: %s", __version__, self._backend.described(_listed(addresses)))
        if self.http_address is not None:
            logger.info("the page is at http://%s/", self.http_address)
        return addresses

    async def _open_ports(self) -> Ports[B]:
        """Open the backend, and accept connections. Raises StorageError, CannotListen, StartError."""
        parts, backend = self._parts, self._backend
        await backend.open()
        self._go_on()
        parts.stops.callback(parts.aside.stop)
        ports = self._ports = Ports(parts, backend, backend.new_broker())
        parts.stops.push_async_callback(ports.close)
        await backend.listen(ports)
        self._go_on()
        return ports

    def _go_on(self) -> None:
        """Raise StartError if the server was stopped while it started."""
        if self._is_stopped:
            raise StartError("stopped before it was ready")

    def _open_control(self, ports: Ports[B]) -> None:
        """Open the control socket and the HTTP listener, if they are configured. Raises CannotListen."""
        parts, path, http = self._parts, control_path(self._parts.config), self._parts.config.http_listener
        commands = MadeLater(partial(self._new_commands, ports))
        if path is not None:
            control = ControlSocket(path, commands, parts.reactor)
            control.open()
            parts.stops.push_async_callback(control.close)
        if http is not None:
            from kshim.server.page import new_http

            self._http = new_http(parts, ports, self._backend, commands, self._why_not_ready)
            self.http_address = self._http.open(http)
            self._backend.http_opened(self.http_address)
            parts.stops.push_async_callback(self._http.close)

    def _new_commands(self, ports: Ports[B]) -> Commands:
        from kshim.server.steering import new_commands

        return new_commands(self._parts, ports, self._backend)

    def _why_not_ready(self) -> str:
        return "the server stops" if self._is_stopped else self._backend.why_not_ready()

    def loaded(self) -> Deferred[None]:
        """Fires when no coordinator has anything left to load, at the latest at the stop. In large data
        directories that is some time after the start.
        """
        return self._parts.loader.when_done()

    def stop(self) -> Deferred[None]:
        """Accept no more connections, finish the requests under way, close the backend. Every call fires when
        that is done.
        """
        return self._stop_lock.run(self._stop)

    async def _stop(self) -> None:
        self._is_stopped = True
        await self._parts.stops.aclose()
        if self._ports is not None:
            await self._ports.disconnect()


def _listed(addresses: Addresses) -> str:
    """Return the addresses for the log, with listener names if there are several listeners."""
    if len(addresses) == 1:
        return ", ".join(map(str, *addresses.values()))
    return ", ".join(f"{name}://{address}" for name, found in addresses.items() for address in found)
