"""Attacks on a listener with TLS. A handshake costs the server much, and the client nearly nothing."""

from __future__ import annotations

import ssl
import struct
from collections.abc import Sequence
from contextlib import suppress

from integration.hostile.attack import Attack, Volley
from kshim.testing.wire import Wire, framed
from schemas.messages.metadata import MetadataRequest

CONNECTIONS = 1000
RECORD_HEADER = struct.Struct(">BHH")
HANDSHAKE, TLS_1_2, LARGEST_RECORD = 0x16, 0x0303, 1 << 14


def client_hello() -> bytes:
    """The first message of a client. Each one that is sent costs the server a signature."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    session = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()


def _many(wire: Wire) -> Sequence[Volley]:
    hello = client_hello()
    return [
        Volley(label=f"{CONNECTIONS} at once", frames=[hello], connections=CONNECTIONS, reads=False, hold_s=2)
        for _ in range(3)
    ]


def _half(wire: Wire) -> Sequence[Volley]:
    hello = client_hello()
    return [
        Volley(label=label, frames=[start], connections=CONNECTIONS, reads=False, hold_s=2)
        for label, start in (("nothing", b""), ("one byte", hello[:1]), ("a half", hello[: len(hello) // 2]))
    ]


def _long(wire: Wire) -> Sequence[Volley]:
    """Send a first message of 16 MB, the longest that TLS can announce."""
    start = RECORD_HEADER.pack(HANDSHAKE, TLS_1_2, LARGEST_RECORD)
    message = b"\1" + (1 << 24 - 1).to_bytes(3) + bytes(LARGEST_RECORD - 4)
    more = RECORD_HEADER.pack(HANDSHAKE, TLS_1_2, LARGEST_RECORD) + bytes(LARGEST_RECORD)
    frames = [start + message, *[more] * 20]
    return [Volley(label="first messages of 16 MB", frames=frames, connections=100, reads=False, hold_s=2)]


def _plain(wire: Wire) -> Sequence[Volley]:
    frame = framed(4, MetadataRequest(topics=None))
    return [Volley(label="plain requests", frames=[frame], connections=CONNECTIONS, reads=False, hold_s=1)]


ATTACKS = [
    Attack(
        name="handshakes",
        what="a thousand clients begin a TLS handshake at once",
        arm=_many,
        tls=True,
        quick=True,
    ),
    Attack(
        name="half-handshakes",
        what="a thousand stop in their TLS handshake",
        arm=_half,
        tls=True,
    ),
    Attack(
        name="long-handshakes", what="TLS handshakes that announce megabytes", arm=_long, tls=True, quick=True
    ),
    Attack(name="plain-to-tls", what="a thousand speak plainly to a listener with TLS", arm=_plain, tls=True),
]
