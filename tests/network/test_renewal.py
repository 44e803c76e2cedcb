"""Certificates are renewed while the server runs, and one that is half written breaks nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kshim.network.renewal import LOOK_S, Renewal
from tests.network.tls_pair import Pair, Reactor, authority, new_tls, server


@pytest.fixture
def reactor() -> Reactor:
    return Reactor()


def test_a_certificate_that_has_changed(
    tmp_path: Path, reactor: Reactor, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "server.pem"
    chain = server().certificate_pem + authority().certificate_pem
    file.write_text(server().key_pem + chain)
    inline = {"ssl_keystore_certificate_chain": "", "ssl_keystore_key": ""}
    tls = new_tls(reactor, ssl_keystore_location=str(file), **inline)
    renewal = Renewal(reactor)
    renewal.watch(tls)
    before = served(reactor, tls)
    reactor.advance(LOOK_S)
    assert served(reactor, tls) == before

    other = authority().server(["kshim.example"])
    caplog.set_level(logging.INFO)
    file.write_text(other.key_pem)
    reactor.advance(LOOK_S)
    reactor.advance(LOOK_S)
    assert served(reactor, tls) == before
    (line,) = caplog.messages
    assert line.startswith("listener SSL: it keeps its old certificates: ssl.keystore.location: expected")

    file.write_text(other.key_pem + other.certificate_pem + authority().certificate_pem)
    reactor.advance(LOOK_S)
    assert served(reactor, tls) == other.certificate.serial_number != before
    assert caplog.messages[1:] == ["listener SSL: it has read its changed certificates"]

    renewal.stop()
    assert reactor.getDelayedCalls() == []


def served(reactor: Reactor, tls: object) -> int:
    """The serial number of the certificate that a new client sees."""
    pair = Pair(tls, reactor)
    pair.handshake()
    found = pair.client.getpeercert()
    pair.close()
    assert found is not None
    return int(str(found["serialNumber"]), 16)
