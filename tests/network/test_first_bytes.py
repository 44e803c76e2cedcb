"""A client that does not speak Kafka's protocol is recognised by its first four bytes."""

import pytest

from kshim.callers.mistake import Mistake
from kshim.network.first_bytes import STRANGERS, stranger

REQUEST_MAX_BYTES = 104_857_600


@pytest.mark.parametrize(
    ("start", "mistake"),
    [
        (bytes.fromhex("16030100c8010000c40303"), Mistake.TLS),
        (bytes.fromhex("16030300"), Mistake.TLS),
        (b"GET / HTTP/1.1\r\n", Mistake.HTTP),
        (b"POST /topics/t HTTP/1.1\r\n", Mistake.HTTP),
        (b"PRI * HTTP/2.0\r\n\r\n", Mistake.HTTP),
        (b"PROXY TCP4 10.0.0.7 10.0.0.1 51000 9092\r\n", Mistake.PROXY),
        (b"\r\n\r\n\0\r\nQUIT\n", Mistake.PROXY),
        (b"*1\r\n$4\r\nPING\r\n", Mistake.REDIS),
        (b"PING\r\n", Mistake.REDIS),
        (b"ruok", Mistake.ZOOKEEPER),
        (b"stat\n", Mistake.ZOOKEEPER),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Mistake.TEXT),
        (b"hello\n", Mistake.TEXT),
    ],
)
def test_strangers(start: bytes, mistake: Mistake) -> None:
    for length in {4, len(start)}:
        found = stranger(start[:length])
        assert found is not None
        assert found.mistake is mistake


@pytest.mark.parametrize(
    "start", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x06\x40\0\1\0\x12", b"text\xff"]
)
def test_who_cannot_be_told(start: bytes) -> None:
    assert stranger(start) is None


def test_no_stranger_begins_like_a_request() -> None:
    for start in STRANGERS:
        assert int.from_bytes(start.ljust(4, b"\0")) > REQUEST_MAX_BYTES
