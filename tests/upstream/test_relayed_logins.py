"""A client's login at a broker beyond: a gate, a relay and a passage, over transports in memory."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure

from kshim.authentication.rules import relayed_rules
from kshim.callers.once import Once
from kshim.callers.principal import ANONYMOUS, Principal
from kshim.configs.endpoint import Endpoint
from kshim.configs.listeners import ListenerConfig, SecurityProtocol
from kshim.configs.sasl import relayed_settings
from kshim.network.gate import GateContext, Logins
from kshim.testing.wire import payload
from kshim.upstream.relayed_logins import RelayedLogins
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.messages.metadata import MetadataRequest
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from schemas.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from schemas.registry import decode_request, decode_response, encode_response
from tests.network.frames import frame
from tests.upstream.relay_world import World

LISTENER = ListenerConfig("EXTERNAL", SecurityProtocol.SASL_PLAINTEXT, Endpoint("10.0.0.1", 9092))
PLAIN = b"\0alice\0wonderland"
REFUSED = SaslAuthenticateResponse(
    error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="Authentication failed: so says Kafka"
)


class Login(World):
    """One client of a listener whose logins are relayed, and the broker."""

    def __init__(self, **properties: str) -> None:
        super().__init__(is_connected=False, gates=self.gates(properties))

    def gates(self, properties: dict[str, str]) -> Any:
        def made(world: World) -> GateContext:
            given = {name.replace("_", "."): text for name, text in properties.items()}
            return GateContext(
                rules=relayed_rules(LISTENER, relayed_settings(given, LISTENER.name)),
                clock=world.clock,
                now_ms=lambda: int(world.clock.seconds() * 1000),
                once=Once(world.clock),
                logins=Logins(),
                relayed=RelayedLogins(world.relays.by_client),
            )

        return made

    def send(self, version: int, request: Any) -> None:
        self.near.dataReceived(frame(payload(version, request, "visitor", 7)))

    def heard(self, key: ApiKey, version: int) -> Any:
        """The client's only new answer; None if there is none."""
        sent = self.client.taken()
        return decode_response(key, version, sent[4:])[1] if sent else None

    def passed(self) -> tuple[RequestHeader, Any]:
        """The only request that the broker has got."""
        sent = self.broker.taken()
        assert len(sent) == 4 + int.from_bytes(sent[:4])
        return decode_request(sent[4:], 100)

    def broker_says(self, response: Any) -> None:
        key = api_key_of_response(response)
        self.respond(encode_response(key, 1, 0, response))

    def shake_hands(self, mechanism: str, version: int = 1) -> Any:
        self.send(version, SaslHandshakeRequest(mechanism=mechanism))
        if not self.broker.connected_here:
            self.connect()
            self.broker.connected_here = True
        header, request = self.passed()
        assert (header.api_version, request) == (1, SaslHandshakeRequest(mechanism=mechanism))
        self.broker_says(SaslHandshakeResponse(mechanisms=("PLAIN", mechanism)))
        return self.heard(ApiKey.SASL_HANDSHAKE, version)

    def token(self, token: bytes, answer: SaslAuthenticateResponse, version: int = 2) -> Any:
        self.send(version, SaslAuthenticateRequest(auth_bytes=token))
        header, request = self.passed()
        assert (header.api_version, bytes(request.auth_bytes)) == (1, token)
        assert self.heard(ApiKey.SASL_AUTHENTICATE, version) is None
        self.broker_says(answer)
        return self.heard(ApiKey.SASL_AUTHENTICATE, version)

    def log_in(self, lifetime_ms: int = 0) -> Any:
        self.shake_hands("PLAIN")
        return self.token(PLAIN, SaslAuthenticateResponse(session_lifetime_ms=lifetime_ms))

    @property
    def principal(self) -> Principal:
        return self.near.client.principal

    @property
    def is_closed(self) -> bool:
        return bool(self.client.disconnecting)


def api_key_of_response(response: Any) -> ApiKey:
    return ApiKey.SASL_HANDSHAKE if isinstance(response, SaslHandshakeResponse) else ApiKey.SASL_AUTHENTICATE


@pytest.fixture
def login() -> Login:
    return Login()


def test_a_single_token(login: Login) -> None:
    assert login.log_in().error_code == 0
    assert login.principal == Principal("User", "alice")
    login.ask(b"w")
    assert login.broker.taken() == frame(b"w")  # on the connection on which the client has logged in


def test_an_exchange_goes_on_message_by_message(login: Login) -> None:
    assert login.shake_hands("SCRAM-SHA-512").error_code == 0
    answer = SaslAuthenticateResponse(auth_bytes=b"r=nonce,s=salt,i=4096")
    assert bytes(login.token(b"n,,n=alice,r=no", answer).auth_bytes) == b"r=nonce,s=salt,i=4096"
    assert login.principal == ANONYMOUS
    login.token(b"c=biws,r=nonce,p=proof", SaslAuthenticateResponse(auth_bytes=b"v=signature"))
    assert login.principal == Principal("User", "alice")


def test_a_challenge_of_oauthbearer_is_no_success(login: Login) -> None:
    login.shake_hands("OAUTHBEARER")
    login.token(b"n,,\x01auth=Bearer x\x01\x01", SaslAuthenticateResponse(auth_bytes=b"{}"))
    assert login.principal == ANONYMOUS
    assert login.token(b"\x01", REFUSED).error_message == REFUSED.error_message
    assert login.is_closed


def test_a_refusal_reaches_the_client_in_the_brokers_words(
    login: Login, caplog: pytest.LogCaptureFixture
) -> None:
    login.shake_hands("PLAIN")
    answer = login.token(PLAIN, REFUSED)
    assert (answer.error_code, answer.error_message) == (REFUSED.error_code, REFUSED.error_message)
    assert login.is_closed
    assert login.principal == ANONYMOUS
    assert "as 'alice'" in caplog.text
    assert "wonderland" not in caplog.text


def test_a_mechanism_that_the_broker_does_not_take(login: Login) -> None:
    login.send(1, SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
    login.connect()
    login.broker.taken()
    error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    login.broker_says(SaslHandshakeResponse(error_code=error, mechanisms=("PLAIN",)))
    answer = login.heard(ApiKey.SASL_HANDSHAKE, 1)
    assert (answer.error_code, answer.mechanisms) == (error, ("PLAIN",))
    assert login.is_closed


@pytest.mark.parametrize("mechanism", ["GSSAPI", "", "plain"])
def test_a_mechanism_that_kshim_does_not_know_goes_nowhere(login: Login, mechanism: str) -> None:
    login.send(1, SaslHandshakeRequest(mechanism=mechanism))
    assert login.heard(ApiKey.SASL_HANDSHAKE, 1).error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert login.is_closed
    assert login.passages == []


def test_mechanisms_may_be_named() -> None:
    login = Login(sasl_enabled_mechanisms="SCRAM-SHA-512")
    login.send(1, SaslHandshakeRequest(mechanism="PLAIN"))
    answer = login.heard(ApiKey.SASL_HANDSHAKE, 1)
    assert answer.mechanisms == ("SCRAM-SHA-512",)
    assert login.passages == []


def test_any_other_request_before_the_login_goes_nowhere(login: Login) -> None:
    login.send(9, MetadataRequest(topics=()))
    assert login.is_closed
    assert login.passages == []
    half = Login()
    half.shake_hands("SCRAM-SHA-256")
    half.token(b"n,,n=alice,r=no", SaslAuthenticateResponse(auth_bytes=b"r=nonce,s=salt,i=4096"))
    half.send(9, MetadataRequest(topics=()))
    assert half.is_closed
    assert half.broker.taken() == b""


@pytest.mark.parametrize("asked", [1, 2])
def test_a_broker_that_goes_away_in_the_middle(
    login: Login, asked: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    if asked == 1:
        login.send(1, SaslHandshakeRequest(mechanism="PLAIN"))
        login.connect()
    else:
        login.shake_hands("SCRAM-SHA-256")
        login.send(2, SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=no"))
    login.passage.connectionLost(Failure(ConnectionDone()))
    assert login.is_closed
    (line,) = caplog.messages
    assert line.endswith("upstream broker b:1 closed the connection")


def test_an_answer_that_cannot_be_read_closes(login: Login, caplog: pytest.LogCaptureFixture) -> None:
    login.shake_hands("PLAIN")
    login.send(2, SaslAuthenticateRequest(auth_bytes=PLAIN))
    login.broker.taken()
    login.respond(b"\0\0\0\0nonsense")
    assert login.is_closed
    assert login.principal == ANONYMOUS
    (line,) = (line for line in caplog.messages if "cannot be read" in line)
    assert "closed the connection of " in line


def test_bare_tokens_are_wrapped(login: Login) -> None:
    assert login.shake_hands("PLAIN", version=0).error_code == 0
    login.near.dataReceived(frame(PLAIN))
    _, request = login.passed()
    assert bytes(request.auth_bytes) == PLAIN
    login.broker_says(SaslAuthenticateResponse())
    assert login.client.taken() == frame(b"")
    assert login.principal == Principal("User", "alice")


def test_a_session_is_as_long_as_the_broker_says(login: Login) -> None:
    assert login.log_in(lifetime_ms=3000).session_lifetime_ms == 3000
    login.clock.advance(2.9)
    login.ask(b"w")
    assert login.broker.taken() == frame(b"w")
    login.clock.advance(0.2)
    login.ask(b"w")
    assert login.is_closed
    assert login.broker.taken() == b""


def test_a_session_is_renewed_behind_what_is_under_way(login: Login) -> None:
    """The broker answers in order: first the request that was there before."""
    login.log_in(lifetime_ms=3000)
    login.ask(b"w")
    assert login.broker.taken() == frame(b"w")
    login.send(1, SaslHandshakeRequest(mechanism="PLAIN"))
    assert login.passed()[1] == SaslHandshakeRequest(mechanism="PLAIN")
    login.respond(b"W")
    login.broker_says(SaslHandshakeResponse(mechanisms=("PLAIN",)))
    assert login.client.taken().startswith(frame(b"W"))
    assert login.token(PLAIN, SaslAuthenticateResponse(session_lifetime_ms=3000)).error_code == 0
    login.clock.advance(2.9)
    login.ask(b"w")
    assert login.broker.taken() == frame(b"w")


def test_nobody_becomes_somebody_else(login: Login) -> None:
    login.log_in(lifetime_ms=3000)
    login.shake_hands("PLAIN")
    bob = login.token(b"\0bob\0wonderland", SaslAuthenticateResponse(session_lifetime_ms=3000))
    assert bob.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert login.is_closed


def test_a_lost_connection_is_not_made_again(login: Login) -> None:
    """Another one would not be the client's: nobody has logged in on it."""
    login.log_in()
    login.passage.connectionLost(Failure(ConnectionDone()))
    login.ask(b"w")
    assert login.is_closed
    assert len(login.passages) == 1
