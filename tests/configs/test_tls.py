"""The properties of TLS, of all listeners and of one."""

from __future__ import annotations

import pytest

from kshim.configs.endpoint import Endpoint
from kshim.configs.listeners import ListenerConfig, SecurityProtocol
from kshim.configs.reading import ConfigError, new_config
from kshim.configs.tls import ClientAuth, TlsSettings, WrongTls, tls_settings

OUTSIDE = ListenerConfig("OUTSIDE", SecurityProtocol.SSL, Endpoint("", 1))
SASL = OUTSIDE._replace(protocol=SecurityProtocol.SASL_SSL)
FILE = {"ssl.keystore.location": "/k.pem"}


def settings(given: dict[str, str], listener: ListenerConfig = OUTSIDE) -> TlsSettings:
    return tls_settings(FILE | given, listener)


def test_what_is_not_set() -> None:
    found = settings({})
    assert (found.keys.location, found.trusted, found.client_auth) == ("/k.pem", None, ClientAuth.NONE)
    assert (found.protocols, found.cipher_suites) == (("TLSv1.2", "TLSv1.3"), ())
    assert found.mapping_rules == "DEFAULT"


def test_a_listener_may_have_its_own() -> None:
    given = {
        "ssl.client.auth": "REQUIRED",
        "listener.name.outside.ssl.client.auth": "requested",
        "listener.name.outside.ssl.keystore.location": "/own.p12",
        "listener.name.other.ssl.keystore.location": "/others.p12",
        "ssl.keystore.password": "p",
    }
    found = settings(given)
    assert (found.client_auth, found.keys.location, found.keys.password) == ("requested", "/own.p12", "p")


def test_a_listener_with_sasl_asks_for_certificates_only_if_it_itself_is_to() -> None:
    """Apache Kafka's rule (KIP-684)."""
    assert settings({"ssl.client.auth": "required"}, SASL).client_auth is ClientAuth.NONE
    own = {"listener.name.outside.ssl.client.auth": "required"}
    assert settings(own, SASL).client_auth is ClientAuth.REQUIRED


def test_old_versions_may_stand_in_the_file() -> None:
    assert settings({"ssl.enabled.protocols": "TLSv1.3,TLSv1.2,TLSv1.1,TLSv1"}).protocols == (
        "TLSv1.2",
        "TLSv1.3",
    )
    assert settings({"ssl.enabled.protocols": "TLSv1.3"}).protocols == ("TLSv1.3",)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"ssl.client.auth": "yes"}, "ssl.client.auth: expected none or requested or required"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols: expected TLSv1.2 or TLSv1.3, or both"),
        ({"ssl.enabled.protocols": "x,TLSv1.2"}, "ssl.enabled.protocols: expected TLSv1.2 or TLSv1.3, or b"),
        ({"ssl.keystore.type": "BKS"}, "ssl.keystore.type: expected PEM or PKCS12 or JKS"),
        ({"ssl.cipher.suites": "AES128"}, "ssl.cipher.suites: expected names such as TLS_ECDHE_"),
        ({"ssl.principal.mapping.rules": "x"}, "ssl.principal.mapping.rules: expected RULE:pattern/"),
        ({"ssl.keystore.key": "x"}, "ssl.keystore.location: expected it alone"),
        ({"ssl.keystore.location": ""}, "ssl.keystore.location: expected it, or ssl.keystore.certificate.c"),
        (
            {"ssl.keystore.location": "", "ssl.keystore.certificate.chain": "x"},
            "ssl.keystore.key: expected the private key of ssl.keystore.certificate.chain",
        ),
        (
            {"ssl.truststore.location": "/t", "ssl.truststore.certificates": "x"},
            "ssl.truststore.location: expected it alone",
        ),
    ],
)
def test_what_is_wrong_is_told(given: dict[str, str], why: str) -> None:
    with pytest.raises(WrongTls) as caught:
        settings(given)
    assert str(caught.value).startswith(why)


def test_a_server_with_tls() -> None:
    given = {"listeners": "SSL://:1", "listener.name.ssl.ssl.keystore.location": "/k.pem"}
    config, warnings = new_config(given)
    assert warnings == []
    assert [listener.protocol for listener in config.listener_configs] == ["SSL"]


def test_a_listener_without_a_key_store_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match=r"^ssl\.keystore\.location: expected it, or ssl\.keystore\.cert"):
        new_config({"listeners": "SSL://:1"})


def test_what_no_listener_has_a_use_for_is_warned_of() -> None:
    own = {"listener.name.other.ssl.client.auth": "none", "ssl.client.auth": "none"}
    _, warnings = new_config(own)
    assert warnings == [
        "listener.name.other.ssl.client.auth has no effect here: no listener with TLS is named OTHER",
        "ssl.client.auth has no effect here: no listener has TLS",
    ]
    _, warnings = new_config({**FILE, **own, "listeners": "SSL://:1", "ssl.provider": "x"})
    assert warnings == [
        "ssl.provider has no effect here",
        "listener.name.other.ssl.client.auth has no effect here: no listener with TLS is named OTHER",
    ]


def test_secrets_are_not_printed() -> None:
    given = {"ssl.keystore.password": "hunter2", "ssl.key.password": "hunter2"}
    assert "hunter2" not in repr(settings(given))
    assert "hunter2" not in repr(new_config({"listeners": "SSL://:1", **FILE, **given})[0])
