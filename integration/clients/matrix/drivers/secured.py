"""A driver's security settings: KSHIM_SECURITY, an object of JSON that every driver reads.

    protocol     security.protocol
    mechanism    sasl.mechanism, with user and password, or with a token that a client is to show
    ca           a PEM file with the authority
    certificate, key
                 PEM files of the client's own

Without it the client connects in plain text.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Final

SECURITY: Final[dict[str, str]] = json.loads(os.environ.get("KSHIM_SECURITY", "{}"))
TOKEN_S = 3600
BOOTSTRAP_TIMEOUT_MS = 10_000
"""How long kafka-python tries again with a wrong password."""


def of_kafka_python() -> dict[str, Any]:
    """For kafka-python."""
    options: dict[str, Any] = {
        "security_protocol": SECURITY.get("protocol"),
        "bootstrap_timeout_ms": BOOTSTRAP_TIMEOUT_MS if SECURITY else None,
        "sasl_mechanism": SECURITY.get("mechanism"),
        "sasl_plain_username": SECURITY.get("user"),
        "sasl_plain_password": SECURITY.get("password"),
        "ssl_cafile": SECURITY.get("ca"),
        "ssl_certfile": SECURITY.get("certificate"),
        "ssl_keyfile": SECURITY.get("key"),
    }
    if "token" in SECURITY:
        from kafka.net.sasl.oauth import AbstractTokenProvider

        class Token(AbstractTokenProvider):
            def token(self) -> str:
                return SECURITY["token"]

        options["sasl_oauth_token_provider"] = Token()
    return {name: value for name, value in options.items() if value is not None}


def of_librdkafka() -> dict[str, Any]:
    """For confluent-kafka."""
    options: dict[str, Any] = {
        "security.protocol": SECURITY.get("protocol"),
        "sasl.mechanism": SECURITY.get("mechanism"),
        "sasl.username": SECURITY.get("user"),
        "sasl.password": SECURITY.get("password"),
        "ssl.ca.location": SECURITY.get("ca"),
        "ssl.certificate.location": SECURITY.get("certificate"),
        "ssl.key.location": SECURITY.get("key"),
    }
    if "token" in SECURITY:
        options["oauth_cb"] = lambda _: (SECURITY["token"], time.time() + TOKEN_S)
    return {name: value for name, value in options.items() if value is not None}
