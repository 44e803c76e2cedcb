"""A failed start: one line, and nothing is left open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.testing import MemoryReactorClock

from kshim.configs.endpoint import Endpoint
from kshim.configs.reading import new_config
from kshim.server import StartError
from kshim.server.parts import Parts
from kshim.server.server import Server
from kshim.upstream.backend import UpstreamBackend
from kshim.upstream.link import LinkError
from schemas.api_key import ApiKey
from tests.api.harness import result
from tests.upstream.link_end import SERVED, Upstream

MODULES = "org.apache.kafka.common.security"
BOOTSTRAP = {
    "upstream.bootstrap.servers": "10.0.0.1:9092",
    "log.dirs": ":memory:",
    "listeners": "127.0.0.1:0",
}


def why_not(connect: Any = None, **given: str) -> str:
    """The line with which a start ends. connect: makes the first link."""
    reactor = MemoryReactorClock()
    properties = {name.replace("_", "."): text for name, text in given.items()}
    parts = Parts(new_config(BOOTSTRAP | properties)[0], reactor)
    backend = UpstreamBackend(parts)
    server = Server(parts, backend)
    if connect is not None:
        backend._contact.connect = connect
    with pytest.raises(StartError) as failed:
        result(server.start())
    assert not reactor.getDelayedCalls()
    assert not reactor.tcpServers
    return str(failed.value)


def test_an_upstream_that_is_too_old() -> None:
    """Kafka 2.7 has Metadata v9: no ids of topics."""
    old = [each for each in SERVED if each.api_key != ApiKey.METADATA]
    of_27 = type(SERVED[0])(api_key=ApiKey.METADATA, min_version=0, max_version=9)
    upstream = Upstream((*old, of_27)).negotiate()

    def connect(address: Endpoint, timeout_s: float) -> Deferred[Any]:
        return succeed(upstream.link)

    assert why_not(connect) == (
        "upstream broker 10.0.0.1:9092 is older than Kafka 2.8: it has no topic ids (Metadata v10)"
    )
    assert not upstream.link.is_open


def test_an_upstream_that_refuses_the_login_is_not_tried_again() -> None:
    tried = []

    def connect(address: Endpoint, timeout_s: float) -> Deferred[Any]:
        tried.append(address)
        error = LinkError("upstream broker 10.0.0.1:9092 refuses the login by PLAIN: No.")
        error.is_refused = True
        return fail(error)

    assert why_not(connect) == "upstream broker 10.0.0.1:9092 refuses the login by PLAIN: No."
    assert len(tried) == 1


def test_a_store_that_cannot_be_read(tmp_path: Path) -> None:
    path = str(tmp_path / "ca.pem")
    line = why_not(upstream_security_protocol="SSL", upstream_ssl_truststore_location=path)
    assert line == f"upstream.ssl.truststore.location: cannot read {path}: No such file or directory"


def test_an_option_that_is_no_number() -> None:
    options = 'unsecuredLoginStringClaim_sub="a" unsecuredLoginLifetimeSeconds="long"'
    line = why_not(
        upstream_security_protocol="SASL_PLAINTEXT",
        upstream_sasl_mechanism="OAUTHBEARER",
        upstream_sasl_jaas_config=f"{MODULES}.oauthbearer.OAuthBearerLoginModule required {options};",
    )
    assert line.startswith("upstream.sasl.jaas.config: could not convert string to float")
