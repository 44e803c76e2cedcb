"""The way into a broker: what comes before the connection is handed over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kshim.authentication.client import Plain
from kshim.client.session import Session
from kshim.configs.endpoint import Endpoint
from kshim.configs.values import Secret
from kshim.upstream.entering import Entering
from kshim.upstream.lost import BrokerRefused, Lost
from schemas.api_key import ApiKey
from schemas.messages.sasl_authenticate import SaslAuthenticateResponse
from schemas.messages.sasl_handshake import SaslHandshakeResponse
from schemas.registry import decode_request, encode_response
from tests.network.frames import frame
from tests.network.transport import Transport as PlainTransport

TIMEOUT_S = 5.0


class Transport(PlainTransport):
    def __init__(self) -> None:
        super().__init__()
        self.protocol: Any = None
        self.hosts: list[str] = []

    def shake_hands(self, host: str) -> None:
        self.hosts.append(host)


class Target:
    def __init__(self, session: Session | None) -> None:
        self.session = session
        self.transport: Any = None
        self.lost: list[Lost] = []

    def makeConnection(self, transport: Any) -> None:  # noqa: N802
        self.transport = transport

    def lose(self, lost: Lost) -> None:
        self.lost.append(lost)


class World:
    def __init__(self, *, is_encrypted: bool = False, logs_in: bool = True) -> None:
        self.clock = Clock()
        self.transport = Transport()
        session = Session("PLAIN", lambda: Plain("alice", Secret("wonderland"))) if logs_in else None
        self.target = Target(session)
        self.entering = Entering(
            self.target, Endpoint("b", 9093), self.clock, TIMEOUT_S, is_encrypted=is_encrypted
        )
        self.transport.protocol = self.entering
        self.entering.makeConnection(self.transport)

    def answer(self) -> int:
        """Answer the request that came; returns its API key."""
        request = self.transport.value()[4:]
        self.transport.clear()
        header, _ = decode_request(request)
        response: Any = SaslHandshakeResponse(mechanisms=("PLAIN",))
        if header.api_key == ApiKey.SASL_AUTHENTICATE:
            response = SaslAuthenticateResponse(auth_bytes=b"")
        reply = encode_response(header.api_key, header.api_version, header.correlation_id, response)
        for byte in frame(reply):
            self.entering.dataReceived(bytes([byte]))
        return header.api_key


def test_tls_comes_first_then_the_login_then_the_target() -> None:
    world = World(is_encrypted=True)
    assert world.transport.hosts == ["b"]
    assert world.transport.value() == b""
    world.entering.secured()
    assert [world.answer(), world.answer()] == [ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE]
    assert world.target.transport is world.transport
    assert world.transport.protocol is world.target
    assert world.transport.value() == b""
    assert not world.clock.getDelayedCalls()


def test_without_a_login_tls_is_all() -> None:
    world = World(is_encrypted=True, logs_in=False)
    assert world.target.transport is None
    world.entering.secured()
    assert world.target.transport is world.transport


def lose(reason: Exception) -> Callable[[World], None]:
    return lambda world: world.entering.connectionLost(Failure(reason))


@pytest.mark.parametrize(
    ("end", "lost"),
    [
        (
            lose(ConnectionDone()),
            Lost("closed the connection during the login: is upstream.security.protocol right?"),
        ),
        (lose(BrokerRefused("shows no good")), Lost("shows no good", is_refused=True)),
        (
            lambda world: world.entering.dataReceived(b"\x15\x03\x03\0\x02\x02\x50"),
            Lost("speaks TLS at this port (upstream.security.protocol)", is_refused=True),
        ),
        (
            lambda world: world.entering.dataReceived(b"HTTP/1.1 400"),
            Lost("does not speak Kafka's protocol", is_refused=True),
        ),
        (
            lambda world: world.clock.advance(TIMEOUT_S),
            Lost("has not come to the end of the login within 5 s"),
        ),
    ],
)
def test_what_goes_wrong_is_told_once(end: Callable[[World], None], lost: Lost) -> None:
    world = World()
    end(world)
    world.clock.advance(TIMEOUT_S)
    world.entering.connectionLost(Failure(ConnectionDone()))
    assert world.target.lost == [lost]
    assert world.target.transport is None
    assert world.transport.aborted


def test_a_handshake_takes_its_time_only() -> None:
    world = World(is_encrypted=True)
    world.clock.advance(TIMEOUT_S)
    (lost,) = world.target.lost
    assert lost.why == "has not come to the end of the handshake of TLS within 5 s"
