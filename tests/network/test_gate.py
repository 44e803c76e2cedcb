"""The gate of a listener with SASL, before a real server over a transport in memory."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import pytest
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kshim.authentication.rules import new_rules
from kshim.callers.once import Once
from kshim.callers.principal import ANONYMOUS, Principal
from kshim.configs.endpoint import Endpoint
from kshim.configs.listeners import ListenerConfig, SecurityProtocol
from kshim.configs.sasl import SaslSettings
from kshim.configs.values import Secret
from kshim.network.connection import Connection
from kshim.network.dispatch import answer
from kshim.network.gate import LEAST_BETWEEN_S, GateContext, Logins
from kshim.network.gates import _new_scram
from kshim.network.intake import Intake
from kshim.network.shared import Shared
from kshim.testing.wire import api_key_of, payload
from kshim.turns.rounds import Rounds
from kshim.turns.unread import Unread
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.metadata import MetadataRequest
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest
from schemas.messages.sasl_handshake import SaslHandshakeRequest
from schemas.registry import decode_response
from tests.api.harness import new_broker
from tests.network.frames import frame
from tests.network.transport import Transport

MECHANISMS = ("PLAIN", "SCRAM-SHA-256")
DELAY_S = 0.1
MAX_RECEIVE_BYTES = 500
PASSWORD, WRONG = "wonderland", "looking-glass"
RIGHT = f"\0alice\0{PASSWORD}".encode()
LISTENER = ListenerConfig("EXTERNAL", SecurityProtocol.SASL_PLAINTEXT, Endpoint("10.0.0.1", 9092))
ALICE = Principal("User", "alice")


class Visit:
    """One connection to a listener with SASL."""

    def __init__(self, *, max_reauth_ms: int = 0, max_idle_ms: int = -1) -> None:
        self.broker = new_broker()
        clock = self.broker.clock
        assert isinstance(clock, Clock)
        self.clock = clock
        settings = SaslSettings(
            mechanisms=MECHANISMS,
            passwords={"alice": Secret(PASSWORD), "bob": Secret(PASSWORD)},
            max_reauth_ms=dict.fromkeys(MECHANISMS, max_reauth_ms),
            max_receive_bytes=MAX_RECEIVE_BYTES,
        )
        self.logins = Logins()
        gates = GateContext(
            rules=new_rules(LISTENER, settings, 100, partial(_new_scram, self.broker.cluster.scram_users)),
            clock=clock,
            now_ms=self.broker.now_ms,
            once=self.broker.once,
            logins=self.logins,
        )
        rounds = Rounds(clock)
        unread = Unread(clock, rounds)
        self.shared = Shared(
            answer=partial(answer, self.broker),
            clock=clock,
            rounds=rounds,
            unread=unread,
            intake=Intake(clock, unread, 1 << 20),
            once=Once(clock),
            max_request_bytes=10_000,
            max_idle_ms=max_idle_ms,
            gates=gates,
        )
        self.connect()

    def connect(self) -> None:
        """Begin with a new connection."""
        self.connection = Connection(self.shared, lambda _: None, lambda _: None)
        self.transport = Transport()
        self.connection.makeConnection(self.transport)

    def send(self, version: int, request: Any) -> None:
        self.connection.dataReceived(frame(payload(version, request, "visitor", 7)))

    def heard(self, key: ApiKey, version: int) -> Any:
        """The only answer since the last one; None if there is none."""
        sent = self.transport.value()
        self.transport.clear()
        if not sent:
            return None
        assert len(sent) == 4 + int.from_bytes(sent[:4])
        return decode_response(key, version, sent[4:])[1]

    def ask(self, version: int, request: Any) -> Any:
        self.send(version, request)
        return self.heard(api_key_of(request), version)

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return self.ask(version, SaslHandshakeRequest(mechanism=mechanism))

    def token(self, token: bytes = RIGHT, version: int = 2) -> Any:
        return self.ask(version, SaslAuthenticateRequest(auth_bytes=token))

    def log_in(self) -> Any:
        assert self.handshake().error_code == 0
        return self.token()

    @property
    def is_closed(self) -> bool:
        return self.transport.disconnecting

    @property
    def is_inside(self) -> bool:
        return self.ask(1, MetadataRequest(topics=())) is not None

    def wait_delay(self) -> None:
        """Nothing is answered before the delay is over."""
        self.clock.advance(DELAY_S - 0.001)
        assert (self.transport.value(), self.is_closed, self.transport.reads) == (b"", False, False)
        self.clock.advance(0.001)
        assert self.is_closed


@pytest.fixture
def visit() -> Visit:
    return Visit()


def test_who_authenticates_is_inside(visit: Visit, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    caplog.clear()
    assert visit.handshake().mechanisms == MECHANISMS
    assert visit.connection.client.principal == ANONYMOUS
    told = visit.token()
    assert (told.error_code, told.auth_bytes, told.session_lifetime_ms) == (ErrorCode.NONE, b"", 0)
    assert visit.connection.client.principal == ALICE
    assert visit.is_inside
    assert caplog.messages == [
        "10.0.0.7:51000 (client_id 'visitor') authenticated as User:alice with PLAIN at listener EXTERNAL"
    ]
    assert visit.logins == Logins(succeeded=1)


def test_the_gate_steps_aside_for_whoever_is_inside_for_ever(visit: Visit) -> None:
    visit.log_in()
    assert visit.connection._server is visit.shared
    too_late = visit.handshake()
    assert too_late.error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_versions_may_be_asked_first(visit: Visit) -> None:
    named = ApiVersionsRequest(client_software_name="visitor", client_software_version="1")
    assert visit.ask(3, named).error_code == ErrorCode.NONE
    assert visit.connection.client.software == "visitor 1"
    visit.log_in()
    assert visit.is_inside


def test_bare_tokens_follow_the_first_version_of_the_handshake(visit: Visit) -> None:
    visit.handshake(version=0)
    visit.connection.dataReceived(frame(RIGHT))
    assert visit.transport.value() == b"\0\0\0\0"
    visit.transport.clear()
    assert visit.is_inside


@pytest.mark.parametrize("token", [f"\0alice\0{WRONG}".encode(), b"\0nobody\0" + WRONG.encode()])
def test_a_failure_is_told_late_and_logged_once(
    visit: Visit, token: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    caplog.clear()
    for _ in range(3):
        visit.connect()
        visit.handshake()
        assert visit.token(token) is None
        visit.wait_delay()
        told = visit.heard(ApiKey.SASL_AUTHENTICATE, 2)
        assert told.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert told.error_message == "Authentication failed: Invalid username or password"
    (line,) = caplog.messages
    assert "failed to authenticate with PLAIN as " in line
    assert WRONG not in line
    assert visit.connection.client.principal == ANONYMOUS
    assert visit.logins == Logins(failed=3)


def test_requests_behind_a_failure_are_not_answered(visit: Visit) -> None:
    visit.handshake()
    visit.send(2, SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + WRONG.encode()))
    visit.send(2, SaslAuthenticateRequest(auth_bytes=RIGHT))
    visit.send(1, MetadataRequest(topics=()))
    visit.wait_delay()
    assert visit.heard(ApiKey.SASL_AUTHENTICATE, 2).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert visit.connection.client.principal == ANONYMOUS


def test_a_client_may_go_before_it_is_told(visit: Visit) -> None:
    visit.handshake()
    visit.token(b"\0alice\0" + WRONG.encode())
    visit.connection.connectionLost(Failure(ConnectionDone()))
    visit.clock.advance(DELAY_S)
    assert visit.transport.value() == b""


def test_a_mechanism_that_is_not_enabled(visit: Visit) -> None:
    assert visit.handshake("GSSAPI") is None
    visit.wait_delay()
    told = visit.heard(ApiKey.SASL_HANDSHAKE, 1)
    assert (told.error_code, told.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, MECHANISMS)


@pytest.mark.parametrize(
    "first",
    [
        frame(b"\x60\x40" + bytes(40)),
        frame(b""),
        frame(bytes([3, 231, 0, 0, 0, 0, 0, 1, 255, 255])),
        frame(bytes([0, 17, 0, 9, 0, 0, 0, 1, 255, 255, 0, 0])),
        frame(bytes([0, 17, 0, 1, 0, 0, 0, 1, 255, 255, 0, 9])),
    ],
    ids=["kerberos", "empty", "no API", "no version", "cut off"],
)
def test_what_nobody_sends_who_authenticates(visit: Visit, first: bytes) -> None:
    visit.connection.dataReceived(first)
    assert (visit.transport.value(), visit.is_closed) == (b"", True)


def test_a_request_before_the_login(visit: Visit, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        visit.connect()
        assert visit.ask(1, MetadataRequest(topics=())) is None
        assert visit.is_closed
    assert [record.levelname for record in caplog.records].count("WARNING") == 1
    assert (
        "it sends Metadata without authenticating at listener EXTERNAL: set security.protocol=SASL_PL"
        in caplog.text
    )


def test_versions_twice(visit: Visit) -> None:
    visit.ask(0, ApiVersionsRequest())
    assert visit.ask(0, ApiVersionsRequest()) is None
    assert visit.is_closed


@pytest.mark.parametrize("request_", [ListGroupsRequest(), SaslHandshakeRequest(mechanism="PLAIN")])
def test_another_request_between_tokens(visit: Visit, request_: Any) -> None:
    visit.handshake()
    assert visit.ask(1, request_) is None
    visit.wait_delay()
    told = visit.heard(api_key_of(request_), 1)
    assert told.error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_requests_are_small_before_the_login(visit: Visit, caplog: pytest.LogCaptureFixture) -> None:
    visit.connection.dataReceived((MAX_RECEIVE_BYTES + 1).to_bytes(4))
    visit.wait_delay()
    assert "above sasl.server.max.receive.size, which is 500" in caplog.text
    visit.connect()
    visit.log_in()
    many = MetadataRequest(topics=None)
    visit.connection.dataReceived(frame(payload(1, many, "x" * 2000)))
    assert visit.heard(ApiKey.METADATA, 1) is not None


def test_a_login_that_stalls_is_counted() -> None:
    visit = Visit(max_idle_ms=5000)
    visit.handshake()
    visit.clock.advance(5)
    assert visit.is_closed
    assert visit.logins == Logins(stalled=1)


# ---- sessions that end (KIP-368)


@pytest.fixture
def short() -> Visit:
    return Visit(max_reauth_ms=5000)


def test_the_client_is_told_how_long_its_login_counts(short: Visit) -> None:
    assert short.log_in().session_lifetime_ms == 5000
    short.clock.advance(5)
    assert short.is_inside


def test_a_client_that_does_not_authenticate_again_is_closed(
    short: Visit, caplog: pytest.LogCaptureFixture
) -> None:
    short.log_in()
    short.clock.advance(5.001)
    assert not short.is_inside
    assert short.is_closed
    assert short.logins.expired == 1
    assert "its login at listener EXTERNAL has ended" in caplog.text


def test_a_client_that_authenticates_again_goes_on(short: Visit) -> None:
    short.log_in()
    for _ in range(3):
        short.clock.advance(4)
        assert short.is_inside
        assert short.log_in().session_lifetime_ms == 5000
    short.clock.advance(4)
    assert short.is_inside
    assert short.logins == Logins(succeeded=4, again=3)


def test_it_is_not_too_late_when_the_session_has_ended(short: Visit) -> None:
    short.log_in()
    short.clock.advance(60)
    assert short.log_in().error_code == 0
    assert short.is_inside


def test_nobody_authenticates_again_at_once(short: Visit) -> None:
    short.log_in()
    short.log_in()
    assert short.handshake().error_code == ErrorCode.ILLEGAL_SASL_STATE
    short.clock.advance(LEAST_BETWEEN_S)
    assert short.handshake().error_code == ErrorCode.NONE


def test_nobody_becomes_somebody_else(short: Visit) -> None:
    short.log_in()
    short.handshake()
    short.token(f"\0bob\0{PASSWORD}".encode())
    short.wait_delay()
    told = short.heard(ApiKey.SASL_AUTHENTICATE, 2).error_message
    assert told == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert short.connection.client.principal == ALICE


def test_nobody_changes_the_mechanism(short: Visit) -> None:
    short.log_in()
    assert short.handshake("SCRAM-SHA-256").error_code == ErrorCode.NONE
    assert short.token() is None
    short.wait_delay()
    assert short.transport.value() == b""
