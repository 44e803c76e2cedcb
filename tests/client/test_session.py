"""kshim's login at a broker, which is played by hand."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.authentication.client import Exchange, OAuthBearer, Plain
from kshim.client.session import MOST_ROUNDS, LoginFailed, Session
from kshim.configs.values import Secret
from schemas.error_code import ErrorCode
from schemas.messages.sasl_authenticate import SaslAuthenticateResponse
from schemas.messages.sasl_handshake import SaslHandshakeResponse
from schemas.registry import decode_request, encode_response

NOW_S = 1000.0
PASSWORD = Secret("wonderland")


def new_session(mechanism: str = "PLAIN") -> Session:
    return Session(mechanism, lambda: Plain("alice", PASSWORD))


def answered(request: bytes | None, response: Any) -> bytes:
    """The frame of a response."""
    assert request is not None
    header, _ = decode_request(request)
    return bytes(encode_response(header.api_key, header.api_version, header.correlation_id, response))


def log_in(session: Session, lifetime_ms: int = 0) -> None:
    request = session.answer(answered(session.begin(), SaslHandshakeResponse(mechanisms=("PLAIN",))), NOW_S)
    response = SaslAuthenticateResponse(auth_bytes=b"", session_lifetime_ms=lifetime_ms)
    assert session.answer(answered(request, response), NOW_S) is None


def test_a_login() -> None:
    session = new_session()
    request: bytes | None = session.begin()
    assert request is not None
    header, handshake = decode_request(request)
    assert (header.client_id, header.api_version, handshake.mechanism) == ("kshim", 1, "PLAIN")
    request = session.answer(answered(request, SaslHandshakeResponse(mechanisms=("PLAIN",))), NOW_S)
    assert request is not None
    header, authenticate = decode_request(request)
    assert (header.correlation_id, authenticate.auth_bytes) == (
        session.correlation_id,
        b"\0alice\0wonderland",
    )
    assert session.answer(answered(request, SaslAuthenticateResponse(auth_bytes=b"")), NOW_S) is None
    assert not session.is_due(NOW_S + 1e9)


def test_a_login_that_counts_for_a_time_is_due_before_that() -> None:
    session = new_session()
    assert not session.is_due(NOW_S)
    log_in(session, lifetime_ms=10_000)
    assert not session.is_due(NOW_S + 8)
    assert session.is_due(NOW_S + 9)
    session.begin()
    assert not session.is_due(NOW_S + 9)


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (
            SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=("A", "B")),
            "does not take PLAIN (sasl.mechanism); it takes A, B",
        ),
        (
            SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE),
            "takes no login at this listener (security.protocol)",
        ),
        (SaslHandshakeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR), "refuses PLAIN: error -1"),
    ],
)
def test_a_mechanism_that_is_not_taken(response: SaslHandshakeResponse, why: str) -> None:
    session = new_session()
    with pytest.raises(LoginFailed) as failed:
        session.answer(answered(session.begin(), response), NOW_S)
    assert str(failed.value) == why


def test_a_refused_login_says_what_the_broker_says_and_no_secret() -> None:
    session = new_session()
    request = session.answer(answered(session.begin(), SaslHandshakeResponse()), NOW_S)
    refused = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="No.")
    with pytest.raises(LoginFailed) as failed:
        session.answer(answered(request, refused), NOW_S)
    assert str(failed.value) == "refuses the login by PLAIN: No."
    assert PASSWORD not in str(failed.value)


@pytest.mark.parametrize("frame", [b"", b"\0\0\0\1", b"\0\0\0\1\0\0\0\0\0", b"\0\0\0\7" + bytes(6)])
def test_what_cannot_be_read_ends_the_login(frame: bytes) -> None:
    session = new_session()
    session.begin()
    with pytest.raises(LoginFailed, match="answers "):
        session.answer(frame, NOW_S)


def test_a_broker_that_never_ends_the_login() -> None:
    session = Session("OAUTHBEARER", lambda: OAuthBearer(Secret("t"), {}))
    request = session.answer(answered(session.begin(), SaslHandshakeResponse()), NOW_S)
    for _ in range(MOST_ROUNDS - 1):
        request = session.answer(answered(request, SaslAuthenticateResponse(auth_bytes=b"{}")), NOW_S)
    with pytest.raises(LoginFailed, match="does not end the login"):
        session.answer(answered(request, SaslAuthenticateResponse(auth_bytes=b"{}")), NOW_S)


def test_without_credentials_there_is_no_login() -> None:
    def no_token() -> Exchange:
        raise LoginFailed("cannot be logged in to: there is no token")

    with pytest.raises(LoginFailed, match="there is no token"):
        Session("OAUTHBEARER", no_token).begin()
