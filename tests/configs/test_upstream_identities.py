"""The file of identities: whose credentials stand in it, and what it may not have."""

from __future__ import annotations

import pytest

from kshim.configs.endpoint import Endpoint
from kshim.configs.listeners import ListenerConfig, SecurityProtocol
from kshim.configs.sasl import LOGIN_MODULES
from kshim.configs.upstream import UpstreamSecurity, WrongUpstreamProperty
from kshim.configs.upstream_identities import check_identities, identities, without_login


def module(user: str, mechanism: str = "PLAIN") -> str:
    return f'{LOGIN_MODULES[mechanism]} required username="{user}" password="{user}-secret";'


BY_LOGIN = {
    "upstream.security.protocol": "SASL_SSL",
    "upstream.sasl.mechanism": "PLAIN",
    "upstream.sasl.jaas.config": module("kshim"),
    "upstream.ssl.keystore.location": "kshim.pem",
    "upstream.ssl.truststore.location": "ca.pem",
}
BY_CERTIFICATE = {
    "upstream.security.protocol": "SSL",
    "upstream.ssl.keystore.location": "kshim.pem",
    "upstream.ssl.keystore.password": "kshims",
    "upstream.ssl.truststore.location": "ca.pem",
}


def user_of(security: UpstreamSecurity) -> str:
    assert security.login is not None
    return str(security.login.options["username"])


def test_each_has_its_own_login_and_all_else_is_as_for_kshim() -> None:
    found = identities(
        {
            "alice.sasl.jaas.config": module("a"),
            "CN=bob,O=x.y.sasl.jaas.config": module("b", "SCRAM-SHA-256"),
            "CN=bob,O=x.y.sasl.mechanism": "SCRAM-SHA-256",
        },
        BY_LOGIN,
    )
    assert {name: user_of(each) for name, each in found.items()} == {"alice": "a", "CN=bob,O=x.y": "b"}
    assert [each.login.mechanism for each in found.values() if each.login] == ["PLAIN", "SCRAM-SHA-256"]
    for each in found.values():
        assert each.tls is not None
        assert each.tls.trusted is not None
        assert each.tls.trusted.location == "ca.pem"
        assert each.tls.keys is not None
        assert each.tls.keys.location == "kshim.pem", "a login tells who it is"


def test_kshims_certificate_is_nobody_elses() -> None:
    found = identities({"alice.ssl.keystore.location": "a.pem"}, BY_CERTIFICATE)["alice"]
    assert found.tls is not None
    assert found.tls.keys is not None
    assert (found.tls.keys.location, found.tls.keys.password) == ("a.pem", "")
    both = identities(
        {"alice.ssl.keystore.location": "a.pem", "alice.sasl.jaas.config": module("a")}, BY_LOGIN
    )["alice"]
    assert both.tls is not None
    assert both.tls.keys is not None
    assert both.tls.keys.location == "a.pem"


@pytest.mark.parametrize(
    ("properties", "given", "why"),
    [
        ({"alice.sasl.mechanism": "SCRAM-SHA-256"}, BY_LOGIN, "alice.sasl.jaas.config: expected, for SCRAM"),
        ({"alice.ssl.keystore.location": "a.pem"}, BY_LOGIN, "alice.sasl.jaas.config: expected, for PLAIN"),
        ({"alice.ssl.key.password": "x"}, BY_CERTIFICATE, "expected alice.ssl.keystore.location"),
        ({"alice.sasl.jaas.config": module("a")}, BY_CERTIFICATE, "alice.sasl.jaas.config: expected a name"),
        (
            {"alice.security.protocol": "SSL"},
            BY_LOGIN,
            "alice.security.protocol: expected a name, ",
        ),
        ({".sasl.jaas.config": module("a")}, BY_LOGIN, ".sasl.jaas.config: expected a name, a dot, and"),
        ({"alice.sasl.mechanism": "MAGIC"}, BY_LOGIN, "alice.sasl.mechanism: expected PLAIN or"),
    ],
)
def test_what_is_missing_or_unknown_is_said(
    properties: dict[str, str], given: dict[str, str], why: str
) -> None:
    with pytest.raises(WrongUpstreamProperty) as wrong:
        identities(properties, given)
    assert str(wrong.value).startswith(f"upstream.identities.file: {why}")
    assert "-secret" not in str(wrong.value)


def test_an_upstream_that_asks_nobody_cannot_tell_them_apart() -> None:
    check_identities(UpstreamSecurity(protocol=SecurityProtocol.SSL), passes_logins=False)
    with pytest.raises(WrongUpstreamProperty, match="to be false"):
        check_identities(UpstreamSecurity(protocol=SecurityProtocol.SASL_SSL), passes_logins=True)
    with pytest.raises(WrongUpstreamProperty, match="SSL, SASL_PLAINTEXT or SASL_SSL"):
        check_identities(UpstreamSecurity(), passes_logins=False)


@pytest.mark.parametrize(
    ("protocol", "given", "is_open"),
    [
        ("PLAINTEXT", {}, True),
        ("SSL", {}, True),
        ("SSL", {"ssl.client.auth": "requested"}, False),
        ("SSL", {"listener.name.l.ssl.client.auth": "required"}, False),
        ("SSL", {"ssl.client.auth": "required", "listener.name.l.ssl.client.auth": "none"}, True),
        ("SASL_PLAINTEXT", {}, False),
        ("SASL_SSL", {}, False),
    ],
)
def test_a_listener_whose_clients_do_not_authenticate(
    protocol: str, given: dict[str, str], is_open: bool
) -> None:
    listener = ListenerConfig("L", SecurityProtocol(protocol), Endpoint("", 0))
    assert without_login(given, [listener]) is (listener if is_open else None)
