"""Differences in how clients authenticate."""

from __future__ import annotations

from integration.differential.differences.guest import Guest, error_of
from integration.differential.differences.scenario import SASL, difference
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest
from schemas.messages.sasl_handshake import SaslHandshakeRequest


@difference("D-unknown-scram-user", apache_kafka="SASL_AUTHENTICATION_FAILED", kshim="NONE", pair=SASL)
def a_first_message_of_a_user_that_there_is_not(guest: Guest) -> str:
    guest.answer(1, SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
    return error_of(guest.answer(2, SaslAuthenticateRequest(auth_bytes=b"n,,n=nobody,r=abc")))
