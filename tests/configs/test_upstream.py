"""The properties of the upstream: what they come to, and what is wrong with them."""

from __future__ import annotations

import pytest

from kshim.configs.listeners import SecurityProtocol
from kshim.configs.properties_file import parse_properties
from kshim.configs.reading import ConfigError, new_config
from kshim.configs.upstream import PROPERTIES, UpstreamSecurity, of_client, upstream_security

UPSTREAM = {"upstream.bootstrap.servers": "kafka:9093"}
MODULES = "org.apache.kafka.common.security"
PLAIN = f'{MODULES}.plain.PlainLoginModule required username="alice" password="wonderland";'
BEARER = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required"
CLIENT = f"""
bootstrap.servers=kafka:9093
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config={MODULES}.plain.PlainLoginModule required \\
  username="alice" password="wonderland";
ssl.truststore.location=/etc/kafka/ca.pem
key.serializer=org.apache.kafka.common.serialization.StringSerializer
"""


def security(**given: str) -> UpstreamSecurity:
    properties = {f"upstream.{name.replace('_', '.')}": text for name, text in given.items()}
    return upstream_security(new_config(UPSTREAM | properties)[0].given)


def problems(**given: str) -> str:
    with pytest.raises(ConfigError) as failed:
        security(**given)
    (problem,) = failed.value.problems
    return problem


def test_a_file_of_a_client() -> None:
    properties, others = of_client(parse_properties(CLIENT))
    assert others == ["key.serializer"]
    config, warnings = new_config(properties)
    assert (config.upstream_bootstrap_servers, warnings) == ("kafka:9093", [])
    found = upstream_security(config.given)
    assert found.protocol is SecurityProtocol.SASL_SSL
    assert found.login is not None
    assert found.login.options == {"username": "alice", "password": "wonderland"}
    assert found.tls is not None
    assert found.tls.trusted is not None
    assert (found.tls.trusted.location, found.tls.checks_host, found.tls.keys) == (
        "/etc/kafka/ca.pem",
        True,
        None,
    )


def test_without_an_upstream_they_have_no_effect() -> None:
    _, warnings = new_config({"upstream.security.protocol": "SSL"})
    assert warnings == [
        "upstream.security.protocol has no effect here: upstream.bootstrap.servers is not set"
    ]


def test_nothing_is_plain_text() -> None:
    assert security() == UpstreamSecurity()


def test_names_of_hosts_need_not_be_checked() -> None:
    found = security(security_protocol="ssl", ssl_endpoint_identification_algorithm="")
    assert found.tls is not None
    assert not found.tls.checks_host


def test_credentials_of_a_token_endpoint_come_from_options_or_properties() -> None:
    tokens = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauthbearer_token_endpoint_url": "https://login/token",
    }
    by_options = security(
        **tokens, sasl_jaas_config=f'{BEARER} clientId="i" clientSecret="s" scope="a";'
    ).login
    assert by_options is not None
    assert (by_options.client_id, by_options.client_secret, by_options.scope) == ("i", "s", "a")
    by_properties = security(
        **tokens,
        sasl_oauthbearer_client_credentials_client_id="i",
        sasl_oauthbearer_client_credentials_client_secret="s",
    ).login
    assert by_properties is not None
    assert (by_properties.client_id, by_properties.client_secret, by_properties.scope) == ("i", "s", "")


SASL = {"security_protocol": "SASL_PLAINTEXT"}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"security_protocol": "TLS"}, "upstream.security.protocol: expected PLAINTEXT or SSL or SASL_"),
        (SASL, "upstream.sasl.mechanism: expected PLAIN or SCRAM-SHA-256 or SCRAM-SHA-512 or OAUTHBEARER"),
        (SASL | {"sasl_mechanism": "GSSAPI"}, "upstream.sasl.mechanism: expected PLAIN or "),
        (SASL | {"sasl_mechanism": "PLAIN"}, "upstream.sasl.jaas.config: expected, for PLAIN: org.apache."),
        (
            SASL | {"sasl_mechanism": "SCRAM-SHA-256", "sasl_jaas_config": PLAIN},
            "upstream.sasl.jaas.config: expected ScramLoginModule as login module, for SCRAM-SHA-256",
        ),
        (
            SASL | {"sasl_mechanism": "PLAIN", "sasl_jaas_config": "PlainLoginModule required;"},
            'upstream.sasl.jaas.config: expected the option username="…"',
        ),
        (
            SASL | {"sasl_mechanism": "PLAIN", "sasl_jaas_config": PLAIN[:-1]},
            "upstream.sasl.jaas.config: expected a semicolon at the end",
        ),
        (
            SASL | {"sasl_mechanism": "OAUTHBEARER", "sasl_jaas_config": f"{BEARER};"},
            'upstream.sasl.jaas.config: expected the option unsecuredLoginStringClaim_sub="…", or upstream.',
        ),
        (
            SASL | {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token_endpoint_url": "file:///token"},
            "upstream.sasl.oauthbearer.token.endpoint.url: expected a URL that begins with https:// or http",
        ),
        (
            SASL | {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token_endpoint_url": "https://t"},
            "upstream.sasl.oauthbearer.client.credentials.client.id: expected it, or the option clientId=",
        ),
        (
            SASL
            | {
                "sasl_mechanism": "PLAIN",
                "sasl_jaas_config": PLAIN,
                "sasl_client_callback_handler_class": "com.example.Handler",
            },
            "upstream.sasl.client.callback.handler.class: expected OAuthBearerSaslClientCallbackHandler or ",
        ),
        (
            {"security_protocol": "SSL", "ssl_endpoint_identification_algorithm": "x"},
            "upstream.ssl.endpoint.identification.algorithm: expected https, or nothing for no check",
        ),
        (
            {"security_protocol": "SSL", "ssl_keystore_key": "k"},
            "upstream.ssl.keystore.certificate.chain: expected the certificate of ssl.keystore.key",
        ),
        (
            {"security_protocl": "SSL"},
            "upstream.security.protocl: no such property (did you mean upstream.security.protocol?); ",
        ),
    ],
)
def test_what_is_wrong_is_told_in_one_line(given: dict[str, str], problem: str) -> None:
    told = problems(**given)
    assert told.startswith(problem)
    assert "wonderland" not in told


def test_classes_of_kafka_may_stand_in_the_file() -> None:
    handler = f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
    found = security(
        **SASL,
        sasl_mechanism="PLAIN",
        sasl_jaas_config=PLAIN,
        sasl_login_callback_handler_class=handler,
    )
    assert found.login is not None


def test_every_secret_is_known_as_one() -> None:
    secrets = {name for name, row in PROPERTIES.items() if row.is_secret}
    assert {name for name in PROPERTIES if "password" in name or "secret" in name} <= secrets
    assert {"upstream.sasl.jaas.config", "upstream.ssl.keystore.key"} <= secrets
    assert all(row.doc.endswith(".") for row in PROPERTIES.values())


# ---- logins that pass through


PASSES = {"upstream.sasl.pass.through.enable": "true", "listeners": "OUTER://127.0.0.1:9092"}
OF_KSHIM = {
    "upstream.security.protocol": "SASL_PLAINTEXT",
    "upstream.sasl.mechanism": "PLAIN",
    "upstream.sasl.jaas.config": PLAIN,
}


@pytest.mark.parametrize("mechanisms", [None, "PLAIN,SCRAM-SHA-256"])
def test_a_listener_whose_logins_pass_through_needs_no_users(mechanisms: str | None) -> None:
    given = {"listener.security.protocol.map": "OUTER:SASL_PLAINTEXT"}
    if mechanisms:
        given["sasl.enabled.mechanisms"] = mechanisms
    assert new_config(UPSTREAM | OF_KSHIM | PASSES | given)[0].upstream_sasl_pass_through_enable


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"listener.security.protocol.map": "OUTER:SSL"},
            "expected SASL at every listener, but OUTER has SSL",
        ),
        (
            {
                "listener.security.protocol.map": "OUTER:SASL_PLAINTEXT",
                "upstream.security.protocol": "PLAINTEXT",
            },
            "expected upstream.security.protocol to be SASL_PLAINTEXT or SASL_SSL, too",
        ),
    ],
)
def test_nobody_comes_in_without_a_login(given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as failed:
        new_config(UPSTREAM | OF_KSHIM | PASSES | given)
    assert f"upstream.sasl.pass.through.enable: {problem}" in failed.value.problems
