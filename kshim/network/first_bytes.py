"""Recognizes clients of other protocols by their first bytes, and has an answer for some of them.

None of these bytes is the size of a request: read as a size, each is above 100 MB or negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kshim.callers.mistake import Mistake

_CLOSE_NOTIFY = bytes.fromhex("15 0303 0002 0100")
"""The alert that ends a TLS connection. After it a Java client fails at once with "SSL handshake failed"; if
the connection were only closed, it would try again for ever. librdkafka asks "connecting to a PLAINTEXT
broker listener?" after this alert, and after no other.
"""
_HTTP_TEXT = b"This port is a Kafka listener. It does not speak HTTP.\n"
_HTTP_ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
    b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (len(_HTTP_TEXT), _HTTP_TEXT)
)
_REDIS_ERROR = b"-ERR This port is a Kafka listener. It does not speak Redis's protocol.\r\n"


class Stranger(NamedTuple):
    """A client that does not speak Kafka's protocol."""

    mistake: Mistake
    answer: bytes = b""
    """Sent before the connection is closed, in the client's protocol."""


_SPOKEN: Final[Mapping[Stranger, tuple[bytes, ...]]] = {
    Stranger(Mistake.TLS, _CLOSE_NOTIFY): (b"\x16\x03",),
    Stranger(Mistake.HTTP, _HTTP_ANSWER): (
        *(b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC"),
        b"PRI ",  # HTTP/2
    ),
    Stranger(Mistake.PROXY): (b"PROX", b"\r\n\r\n"),  # versions 1 and 2
    Stranger(Mistake.REDIS, _REDIS_ERROR): (b"*", b"PING", b"INFO", b"AUTH", b"HELL"),
    Stranger(Mistake.ZOOKEEPER): (
        *(b"conf", b"cons", b"crst", b"dump", b"envi", b"isro", b"mntr", b"ruok"),
        *(b"srst", b"srvr", b"stat", b"wchs"),
    ),
}
STRANGERS: Final[Mapping[bytes, Stranger]] = {
    start: stranger for stranger, starts in _SPOKEN.items() for start in starts
}
"""Clients of other protocols, by their first one, two or four bytes."""
_TEXT = Stranger(Mistake.TEXT)
_PRINTABLE = frozenset((*range(32, 127), *b"\t\r\n"))


def stranger(start: bytes) -> Stranger | None:
    """Return the kind of client that begins with these bytes, at least four; None if it is unknown."""
    for length in (4, 2, 1):
        if found := STRANGERS.get(start[:length]):
            return found
    return _TEXT if _PRINTABLE.issuperset(start) else None
