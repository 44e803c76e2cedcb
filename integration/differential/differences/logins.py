"""Differences in how clients authenticate."""

from __future__ import annotations

import itertools

from integration.differential.differences.guest import Guest, error_of, soon
from integration.differential.differences.scenario import SASL, difference
from integration.differential.stories.sasl_talk import PASSWORD, USER
from integration.differential.stories.users import alter, put
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest
from schemas.messages.sasl_handshake import SaslHandshakeRequest


@difference("D-unknown-scram-user", apache_kafka="SASL_AUTHENTICATION_FAILED", kshim="NONE", pair=SASL)
def a_first_message_of_a_user_that_there_is_not(guest: Guest) -> str:
    return _log_in(guest, "SCRAM-SHA-256", b"n,,n=nobody,r=abc", via="main")


@difference("D-large-tokens", apache_kafka="NONE", kshim="SASL_AUTHENTICATION_FAILED", pair=SASL)
def a_first_message_of_scram_that_is_large(guest: Guest) -> str:
    _log_in(guest, "PLAIN", f"\0{USER}\0{PASSWORD}".encode(), via="admin")
    guest.answer(0, alter(put(USER)), via="admin")
    message = f"n,,n={USER},r=abc,x={'y' * 20_000}".encode()
    tries = itertools.count()
    return soon(lambda: _log_in(guest, "SCRAM-SHA-256", message, via=f"try {next(tries)}"), "NONE")


def _log_in(guest: Guest, mechanism: str, token: bytes, via: str) -> str:
    """The error in the answer to the first token."""
    guest.answer(1, SaslHandshakeRequest(mechanism=mechanism), via=via)
    return error_of(guest.answer(2, SaslAuthenticateRequest(auth_bytes=token), via=via))
