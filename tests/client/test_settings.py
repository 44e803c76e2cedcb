"""A client's settings: what users write, and the line for each mistake."""

from __future__ import annotations

import pytest

from kshim.client.faults import ClientError, did_you_mean
from kshim.client.settings import client_settings
from kshim.configs.endpoint import Endpoint

SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def test_addresses_and_properties() -> None:
    settings = client_settings(
        "kafka1:9092, [::1]:9093,:9094", {"client.id": "me", "request.timeout.ms": "1500", "acks": "1"}
    )
    assert settings.bootstrap == [
        Endpoint("kafka1", 9092),
        Endpoint("::1", 9093),
        Endpoint("127.0.0.1", 9094),
    ]
    assert (settings.client_id, settings.timeout_s) == ("me", 1.5)
    assert settings.new_session() is None


def test_a_login() -> None:
    settings = client_settings(
        "k:1", {**SASL, "sasl.jaas.config": f'{MODULE} username="alice" password="wonderland";'}
    )
    session = settings.new_session()
    assert session is not None
    assert b"PLAIN" in session.begin()
    assert "wonderland" not in repr(settings)


@pytest.mark.parametrize(
    ("bootstrap", "properties", "line"),
    [
        ("k", {}, "bootstrap.servers k: expected HOST:PORT, as in 127.0.0.1:9092 or [::1]:9092"),
        ("k:0", {}, "bootstrap.servers k:0: expected HOST:PORT with a port from 1 to 65535"),
        (
            "k:1",
            {"request.timeout.ms": "soon"},
            "request.timeout.ms: expected a number of ms, 1 or more, not 'soon'",
        ),
        (
            "k:1",
            {"security.protocol": "TLS"},
            "security.protocol: expected PLAINTEXT or SSL or SASL_PLAINTEXT or SASL_SSL",
        ),
        (
            "k:1",
            {**SASL, "sasl.jaas.config": f'{MODULE} username="alice";'},
            'sasl.jaas.config: expected the option password="…"',
        ),
        (
            "k:1",
            {"security.protocol": "SSL", "ssl.truststore.location": "/nowhere.pem"},
            "ssl.truststore.location: cannot read /nowhere.pem: No such file or directory",
        ),
    ],
)
def test_a_mistake_is_one_line_with_kafkas_own_names(
    bootstrap: str, properties: dict[str, str], line: str
) -> None:
    with pytest.raises(ClientError) as failed:
        client_settings(bootstrap, properties)
    assert str(failed.value) == line


def test_a_name_that_is_almost_right() -> None:
    assert did_you_mean("ordrs", {"orders", "users"}) == "; did you mean orders?"
    assert did_you_mean("zzz", {"orders", "users"}) == ""
