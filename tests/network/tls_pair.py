"""A TlsSocket and a real client of TLS, on a pair of sockets; the test plays the reactor's turns."""

from __future__ import annotations

import functools
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from twisted.internet.task import Clock

from kshim.callers.mistake import Mistake
from kshim.callers.principal import Principal
from kshim.certificates.authority import Authority, Issued
from kshim.configs.endpoint import Endpoint
from kshim.configs.listeners import ListenerConfig, SecurityProtocol
from kshim.configs.tls import tls_settings
from kshim.network.handshakes import Handshakes
from kshim.network.tls import Tls


@functools.cache
def authority() -> Authority:
    return Authority()


@functools.cache
def server() -> Issued:
    return authority().server(["kshim.example"])


@functools.cache
def alice() -> Issued:
    return authority().client("CN=Alice,OU=Sales")


LISTENER = ListenerConfig("SSL", SecurityProtocol.SSL, Endpoint("", 9093))


def properties(**others: str) -> dict[str, str]:
    """The properties of a TLS listener, with "_" for "."."""
    given = {
        "ssl.keystore.certificate.chain": server().certificate_pem + authority().certificate_pem,
        "ssl.keystore.key": server().key_pem,
        "ssl.truststore.certificates": authority().certificate_pem,
    }
    return given | {name.replace("_", "."): text for name, text in others.items()}


def new_tls(clock: Any, names_clients: bool = True, by_name: Any = None, **others: str) -> Tls:
    settings = tls_settings(properties(**others), LISTENER)
    handshakes = Handshakes(clock)
    return Tls(settings, names_clients=names_clients, handshakes=handshakes, clock=clock, by_name=by_name)


class Receiver:
    """The receiver of what a connection hands over."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.large = memoryview(b"")
        self.paused_times = 0
        self.principals: list[Principal | None] = []
        self.mistakes: list[tuple[Mistake, dict[str, object]]] = []
        self.transport: Any = None
        self.on_data: Callable[[], object] = lambda: None
        self.lost = False

    def dataReceived(self, data: bytes) -> None:
        self.received += data
        self.on_data()

    def room(self, arrived: Callable[[], int]) -> memoryview | None:
        return self.large or None

    def filled(self, received: int) -> None:
        self.received += self.large[:received]
        self.large = self.large[received:]
        self.on_data()

    def secured(self, principal: Principal | None) -> None:
        self.principals.append(principal)

    def insecure(self, mistake: Mistake, **details: object) -> None:
        self.mistakes.append((mistake, details))
        self.transport.unregisterProducer()
        self.transport.loseConnection()

    def pauseProducing(self) -> None:
        self.paused_times += 1

    def resumeProducing(self) -> None:
        pass

    def stopProducing(self) -> None:
        pass

    def connectionLost(self, reason: object) -> None:
        self.lost = True


class Reactor(Clock):
    """Knows who wants to read and to write."""

    def __init__(self) -> None:
        super().__init__()
        self.readers: set[Any] = set()
        self.writers: set[Any] = set()

    def addReader(self, reader: object) -> None:  # noqa: N802
        self.readers.add(reader)

    def removeReader(self, reader: object) -> None:  # noqa: N802
        self.readers.discard(reader)

    def addWriter(self, writer: object) -> None:  # noqa: N802
        self.writers.add(writer)

    def removeWriter(self, writer: object) -> None:  # noqa: N802
        self.writers.discard(writer)

    def turn(self) -> None:
        """Have both sides read and write if they want to, then do what is due."""
        for ready, do in ((self.readers, "doRead"), (self.writers, "doWrite")):
            for each in list(ready):
                why = getattr(each, do)() if each.connected else None
                if why is not None:
                    each.connectionLost(_Reason(why))
        self.advance(0)


class _Reason:
    """A Failure, as far as the transport asks it."""

    def __init__(self, value: object) -> None:
        self.value = value

    def check(self, *_: object) -> bool:
        return False


class Pair:
    """The transport, what it hands over to, and the client's end."""

    def __init__(self, tls: Tls | None = None, reactor: Reactor | None = None, **others: str) -> None:
        self.reactor = reactor or Reactor()
        ours, self.socket = socket.socketpair()
        self.socket.setblocking(False)
        ours.setblocking(False)
        self.protocol = Receiver()
        tls = tls or new_tls(self.reactor, **others)
        self.transport = tls.transport(ours, self.protocol, ("10.0.0.7", 5000), None, 0, self.reactor)
        self.protocol.transport = self.transport
        self.transport.registerProducer(self.protocol, streaming=True)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client: ssl.SSLObject

    def begin(self, issued: Issued | None = None, tmp_path: Path | None = None, **options: Any) -> None:
        """Begin as the client: with a certificate, and options of its SSLContext."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=options.pop("cadata", authority().certificate_pem))
        if issued is not None:
            assert tmp_path is not None
            file = tmp_path / "client.pem"
            file.write_text(issued.key_pem + issued.certificate_pem)
            context.load_cert_chain(file)
        if "ciphers" in options:
            context.set_ciphers(options.pop("ciphers"))
        host = options.pop("server_hostname", "kshim.example")
        context.check_hostname = host == "kshim.example"
        for name, value in options.items():
            setattr(context, name, value)
        self.client = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    def handshake(self, issued: Issued | None = None, tmp_path: Path | None = None, **options: Any) -> None:
        """Begin as the client, and finish the handshake. Raises ssl.SSLError."""
        self.begin(issued, tmp_path, **options)
        self._until_done(self.client.do_handshake)
        for _ in range(3):
            self._swap()

    def send(self, data: bytes) -> None:
        """Send as the client; the server receives it."""
        view = memoryview(data)
        while view:
            view = view[self.client.write(view[: 1 << 16]) :]
            self._swap()
        for _ in range(4):
            self._swap()

    def read(self, size: int) -> bytes:
        """The bytes that the client receives."""
        found = bytearray()
        while len(found) < size:
            found += self._until_done(lambda: self.client.read(1 << 16))
        return bytes(found)

    def swap_raw(self) -> bytes:
        """Send what the client has to say; return the bytes that are there for it."""
        if self._outgoing.pending:
            with suppress(BrokenPipeError):
                self.socket.sendall(self._outgoing.read())
        self.reactor.turn()
        try:
            received = self.socket.recv(1 << 20)
        except BlockingIOError:
            return b""
        if not received:
            self._incoming.write_eof()
        return received

    def _swap(self) -> None:
        if received := self.swap_raw():
            self._incoming.write(received)

    def _until_done(self, do: Callable[[], Any]) -> Any:
        for _ in range(10_000):
            try:
                return do()
            except ssl.SSLWantReadError:
                self._swap()
            except ssl.SSLError:
                self._swap()  # its alert
                self._swap()
                raise
        raise AssertionError("there is no end to it")

    def close(self) -> None:
        self.socket.close()
        if self.transport.connected:
            self.transport.connectionLost(_Reason(None))
