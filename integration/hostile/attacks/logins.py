"""Attacks on a listener with SASL: wrong passwords, and tokens that take long to read."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from integration.hostile.attack import Attack, Volley
from integration.support.server import set_options
from kshim.testing.wire import Wire, framed
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest
from schemas.messages.sasl_handshake import SaslHandshakeRequest

LISTENERS = ("PLAINTEXT", "SASL_PLAINTEXT")
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{MODULE} user_alice="wonderland";',
}
OPTIONS = set_options(SETTINGS)
LARGEST_BYTES = 520_000
NONE = "eyJhbGciOiJub25lIn0"
"""{"alg":"none"} in Base64."""


def _login(mechanism: str, token: bytes) -> list[bytes]:
    handshake = framed(1, SaslHandshakeRequest(mechanism=mechanism))
    return [handshake, framed(2, SaslAuthenticateRequest(auth_bytes=token))]


def _wrong_passwords(wire: Wire) -> Sequence[Volley]:
    """Try more than a thousand passwords a second: the answer takes 0.1 s, so use 300 clients."""
    tries = _login("PLAIN", b"\0alice\0wrong")
    return [Volley(label="wrong passwords", frames=tries, connections=300, in_flight=2) for _ in range(10)]


def _unknown_users(wire: Wire) -> Sequence[Volley]:
    tries = _login("SCRAM-SHA-512", b"n,,n=nobody,r=abc")
    return [Volley(label="unknown users", frames=tries, connections=300, in_flight=2) for _ in range(5)]


def _huge_tokens(wire: Wire) -> Sequence[Volley]:
    """Send tokens of the largest size that a pattern must read to the end, or begin again and again."""
    parts = [
        ("PLAIN", b"\0" * LARGEST_BYTES),
        ("SCRAM-SHA-256", b"n,,n=u,r=abc" + b",a=b" * (LARGEST_BYTES // 4) + b"\x80"),
        ("SCRAM-SHA-256", b"n,a=" + b"a" * LARGEST_BYTES),
        ("SCRAM-SHA-512", b"n,,n=" + b"=2C" * (LARGEST_BYTES // 3)),
        ("OAUTHBEARER", b"n,,\x01" + b"a=b\x01" * (LARGEST_BYTES // 4)),
        ("OAUTHBEARER", f"n,,\x01auth=Bearer {NONE}.{'W1tb' * (LARGEST_BYTES // 4)}.\x01\x01".encode()),
    ]
    return [
        Volley(
            label=f"{mechanism} {number}",
            frames=_login(mechanism, token),
            connections=10,
            in_flight=2,
        )
        for number, (mechanism, token) in enumerate(parts)
    ]


def _silent_clients(wire: Wire) -> Sequence[Volley]:
    """Begin to authenticate, announce the largest token, and send no byte of it."""
    handshake, _ = _login("PLAIN", b"")
    frames = [handshake, struct.pack(">i", LARGEST_BYTES)]
    return [
        Volley(label="silent", frames=frames, connections=1000, reads=False, hold_s=3),
    ]


ATTACKS = [
    Attack(
        name=name,
        what=what,
        arm=arm,
        listeners=LISTENERS,
        options=OPTIONS,
        quick=name == "wrong-passwords",
    )
    for name, what, arm in (
        ("wrong-passwords", "tries more than a thousand passwords a second", _wrong_passwords),
        ("unknown-users", "authenticates as a user that there is not", _unknown_users),
        ("huge-tokens", "sends the largest tokens, which take long to read", _huge_tokens),
        ("silent-logins", "begins to authenticate, and goes on never", _silent_clients),
    )
]
