"""SASL at a listener that has none: Apache Kafka's answers, and one line that says what to change."""

from __future__ import annotations

import pytest

from kshim.api.sasl_authenticate import sasl_authenticate
from kshim.api.sasl_handshake import sasl_handshake
from schemas.error_code import ErrorCode
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from schemas.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.api.harness import ask, new_broker


@pytest.mark.parametrize("version", [0, 1])
def test_a_handshake_is_refused_with_one_line(version: int, caplog: pytest.LogCaptureFixture) -> None:
    broker = new_broker()
    caplog.clear()
    request = SaslHandshakeRequest(mechanism="SCRAM-SHA-256")
    refused = SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=())
    assert [ask(sasl_handshake, broker, request, version) for _ in range(3)] == [refused] * 3
    assert caplog.messages == [
        "127.0.0.1:51000 (client_id 'test'): it asks for SASL 'SCRAM-SHA-256', "
        "but this listener has no SASL: set security.protocol=PLAINTEXT in the client"
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_token_is_refused(version: int) -> None:
    refused = SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
    assert (
        ask(sasl_authenticate, new_broker(), SaslAuthenticateRequest(auth_bytes=b"\0a\0b"), version)
        == refused
    )
