"""Ports without sockets: a reactor that listens in memory, and a client that connects to it."""

from typing import Any

from twisted.internet.error import CannotListenError
from twisted.internet.testing import MemoryReactorClock

from kshim.testing.wire import payload
from schemas.api_key import ApiKey
from schemas.registry import decode_response
from tests.network.frames import frame
from tests.network.transport import Transport


class Reactor(MemoryReactorClock):
    """A reactor whose ports can be taken."""

    def __init__(self, error: CannotListenError | None = None) -> None:
        super().__init__()
        self._error = error
        self.listens = True

    def listenTCP(self, port: int, factory: Any, backlog: int = 50, interface: str = "") -> Any:  # noqa: N802
        if self._error:
            raise self._error
        self.port = super().listenTCP(port, factory, backlog, interface)
        self.port.stopListening = self._stop_listening
        return self.port

    def _stop_listening(self) -> None:
        self.listens = False

    @property
    def factory(self) -> Any:
        return self.tcpServers[0][1]


class Client:
    """A connection to one broker, and the answers that it received."""

    def __init__(self, reactor: Reactor, broker: int, client_id: str = "c") -> None:
        self._reactor, self._transport, self._client_id = reactor, Transport(), client_id
        self.connection = reactor.tcpServers[broker - 1][1].buildProtocol(self._transport.peerAddr)
        self.connection.makeConnection(self._transport)

    def ask(self, key: ApiKey, request: Any, version: int) -> Any:
        """The response; None if there is none yet."""
        self._key, self._version = key, version
        self._transport.clear()
        self.connection.dataReceived(frame(payload(version, request, self._client_id, 7)))
        self._reactor.advance(0)
        return self.answer

    @property
    def answer(self) -> Any:
        sent = self._transport.value()
        return decode_response(self._key, self._version, sent[4:])[1] if sent else None
