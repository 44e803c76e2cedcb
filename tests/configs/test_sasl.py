"""The properties of SASL: which counts where several are set, and what is refused."""

from __future__ import annotations

import pytest

from kshim.configs.config import PROPERTIES, Config
from kshim.configs.reading import ConfigError, new_config
from kshim.configs.sasl import DEFAULTS, WrongSasl, is_of_sasl, sasl_settings

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SECRET = "s3cret"
SCRAM = {"sasl.enabled.mechanisms": "SCRAM-SHA-256"}
SKEW = "unsecuredValidatorAllowableClockSkewMs"
OAUTH = {"sasl.enabled.mechanisms": "OAUTHBEARER"}
KEYS = "sasl.oauthbearer.jwks.endpoint.url"
L, INTERNAL = "listener.name.external.", "listener.name.internal."


def users(name: str) -> str:
    return f'{MODULE} user_{name}="{SECRET}";'


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([f"{L}plain.sasl.jaas.config", f"{L}sasl.jaas.config", "plain.sasl.jaas.config"], 0),
        ([f"{L}sasl.jaas.config", "plain.sasl.jaas.config", "sasl.jaas.config"], 0),
        (["plain.sasl.jaas.config", "sasl.jaas.config"], 0),
        (["sasl.jaas.config"], 0),
        (
            [
                "listener.name.internal.plain.sasl.jaas.config",
                f"{L}scram-sha-256.sasl.jaas.config",
                "sasl.jaas.config",
            ],
            2,
        ),
    ],
)
def test_the_nearest_property_counts(names: list[str], expected: int) -> None:
    properties = {name: users(f"of{number}") for number, name in enumerate(names)}
    found = sasl_settings({"sasl.enabled.mechanisms": "PLAIN", **properties}, "EXTERNAL")
    assert found.passwords == {f"of{expected}": SECRET}
    assert SECRET not in repr(found)


def test_a_listener_may_have_mechanisms_of_its_own() -> None:
    properties = {**SCRAM, f"{L}sasl.enabled.mechanisms": " SCRAM-SHA-512, SCRAM-SHA-256 ,"}
    assert sasl_settings(properties, "EXTERNAL").mechanisms == ("SCRAM-SHA-512", "SCRAM-SHA-256")
    assert sasl_settings(properties, "INTERNAL").mechanisms == ("SCRAM-SHA-256",)


def test_how_long_a_login_counts_may_differ_by_mechanism() -> None:
    properties = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "connections.max.reauth.ms": "1000",
        f"{L}scram-sha-512.connections.max.reauth.ms": "2000",
        f"{L}sasl.server.max.receive.size": "300",
    }
    found = sasl_settings(properties, "External")
    assert found.max_reauth_ms == {"SCRAM-SHA-256": 1000, "SCRAM-SHA-512": 2000}
    assert found.max_receive_bytes == 300


def test_tokens_that_are_not_signed_have_options_of_the_login_module() -> None:
    options = 'unsecuredValidatorRequiredScope="a b" unsecuredValidatorAllowableClockSkewMs="3000"'
    properties = {
        **OAUTH,
        f"{L}oauthbearer.sasl.jaas.config": f"x.OAuthBearerLoginModule required {options};",
    }
    found = sasl_settings(properties, "EXTERNAL").oauth
    assert (found.required_scope, found.clock_skew_ms, found.principal_claim) == (("a", "b"), 3000, "sub")


def test_tokens_that_are_signed_have_properties() -> None:
    properties = {
        **OAUTH,
        f"{L}oauthbearer.sasl.oauthbearer.jwks.endpoint.url": "file:///keys",
        f"{L}sasl.oauthbearer.expected.audience": "a, b",
        "sasl.oauthbearer.expected.issuer": "https://here",
        "sasl.oauthbearer.sub.claim.name": "user",
        f"{L}oauthbearer.sasl.server.callback.handler.class": "x.OAuthBearerValidatorCallbackHandler",
    }
    found = sasl_settings(properties, "EXTERNAL").oauth
    assert (found.jwks_url, found.audiences, found.issuer) == ("file:///keys", ("a", "b"), "https://here")
    assert (found.principal_claim, found.scope_claim, found.clock_skew_ms) == ("user", "scope", 30_000)


def test_tokens_of_any_audience_and_issuer_must_be_allowed() -> None:
    """As in Apache Kafka 4.4."""
    allowed = {f"sasl.oauthbearer.allow.unverified.{each}": "true" for each in ("audience", "issuer")}
    found = sasl_settings({**OAUTH, KEYS: "file:///keys", **allowed}, "EXTERNAL").oauth
    assert (found.audiences, found.issuer) == (None, None)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, "sasl.enabled.mechanisms=: expected one or some of PLAIN, SCRAM-SHA-256"),
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "sasl.enabled.mechanisms=GSSAPI: expected one or some"),
        ({"sasl.enabled.mechanisms": "plain"}, "sasl.enabled.mechanisms=plain: expected one or some"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, f"{L}plain.sasl.jaas.config: expected, as PLAIN is enabled"),
        (
            {"sasl.enabled.mechanisms": "PLAIN", f"{L}plain.sasl.jaas.config": f'{MODULE} user_a="{SECRET}"'},
            f"{L}plain.sasl.jaas.config: expected a semicolon",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                f"{L}plain.sasl.jaas.config": f'my.Login required a="{SECRET}";',
            },
            f"{L}plain.sasl.jaas.config: expected PlainLoginModule",
        ),
        ({**SCRAM, f"{L}scram-sha-256.connections.max.reauth.ms": "-1"}, "reauth.ms: expected an integer"),
        (
            {**SCRAM, "sasl.server.callback.handler.class": "my.Handler"},
            "expected ScramServerCallbackHandler",
        ),
        (
            {**OAUTH, "sasl.server.callback.handler.class": "x.OAuthBearerValidatorCallbackHandler"},
            "expected sasl.oauthbearer.jwks.endpoint.url, too",
        ),
        (
            {**OAUTH, KEYS: "file:///keys", "sasl.oauthbearer.expected.issuer": "i"},
            "expected sasl.oauthbearer.expected.audience, too, or sasl.oauthbearer.allow.unverified.",
        ),
        (
            {**OAUTH, KEYS: "file:///keys", "sasl.oauthbearer.expected.audience": "a"},
            "expected sasl.oauthbearer.expected.issuer, too, or sasl.oauthbearer.allow.unverified.",
        ),
        (
            {**OAUTH, "sasl.jaas.config": f'OAuthBearerLoginModule required {SKEW}="x";'},
            "unsecuredValidatorAllowableClockSkewMs: expected an integer",
        ),
    ],
)
def test_what_is_refused(properties: dict[str, str], expected: str) -> None:
    with pytest.raises(WrongSasl) as fault:
        sasl_settings(properties, "EXTERNAL")
    assert expected in str(fault.value)
    assert SECRET not in str(fault.value)


def test_a_server_without_a_listener_with_sasl_needs_none_of_it() -> None:
    properties = {"sasl.enabled.mechanisms": "GSSAPI", "sasl.jaas.config": f'x "{SECRET}'}
    config, warnings = new_config(properties)
    assert warnings == []
    assert SECRET not in repr(config)


def test_faults_are_told_at_the_start_without_the_password() -> None:
    properties = {"listeners": "SASL_PLAINTEXT://:0", "sasl.enabled.mechanisms": "PLAIN"}
    with pytest.raises(ConfigError) as fault:
        new_config({**properties, "sasl.jaas.config": f'{MODULE} user_a="{SECRET}'})
    assert fault.value.problems == ("sasl.jaas.config: expected a semicolon at the end",)
    assert new_config({**properties, "plain.sasl.jaas.config": users("a")})[1] == []


def test_a_secret_of_the_page_is_not_told_either() -> None:
    with pytest.raises(ConfigError) as fault:
        new_config({"http.token": f"{SECRET} " + "x"})
    assert SECRET not in str(fault.value)


def test_the_defaults_are_those_of_kshim_config() -> None:
    assert {name: PROPERTIES[name].default for name in DEFAULTS} == DEFAULTS
    assert Config().connection_failed_authentication_delay_ms == 100


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{L}plain.sasl.jaas.config", True),
        ("scram-sha-512.sasl.jaas.config", True),
        (f"{L}connections.max.reauth.ms", True),
        ("sasl.kerberos.service.name", False),
        (f"{L}gssapi.sasl.jaas.config", False),
        (f"{L}ssl.client.auth", False),
    ],
)
def test_names_that_sasl_reads(name: str, expected: bool) -> None:
    assert is_of_sasl(name) == expected
