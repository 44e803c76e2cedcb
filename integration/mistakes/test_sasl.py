"""Clients that authenticate where nobody does, or do not where all must, fail as at Apache Kafka's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from integration.java.tool import run_to_end
from integration.mistakes.conftest import TIMEOUT_S, Told
from integration.support.awaiting import wait_until
from integration.support.server import Server
from kshim.callers.mistake import Mistake
from kshim.testing.wire import Wire, sized
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest
from schemas.messages.sasl_handshake import SaslHandshakeRequest

PLAIN = {"mechanism": "PLAIN", "protocol": "PLAINTEXT"}
JAVA = """
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username=u password=p;
"""


def test_both_servers_answer_each_version_alike(both: tuple[Server, Server]) -> None:
    theirs, ours = (list(answers(server)) for server in both)
    assert ours == theirs
    assert {type(answer).__name__ for answer in ours} == {"SaslHandshakeResponse", "SaslAuthenticateResponse"}


def answers(server: Server) -> Iterator[object]:
    with Wire(server.host, server.port) as wire:
        for version in (0, 1):
            yield wire.ask(version, SaslHandshakeRequest(mechanism="PLAIN"))
        for version in (0, 1, 2):
            yield wire.ask(version, SaslAuthenticateRequest(auth_bytes=b"\0u\0p"))


def test_librdkafka_says_that_the_mechanism_is_refused(own_server: Server, told: Told) -> None:
    errors: list[str] = []
    admin = AdminClient(
        {
            "bootstrap.servers": own_server.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "u",
            "sasl.password": "p",
            "error_cb": lambda error: errors.append(str(error)),
        }
    )
    wait_until(lambda: admin.poll(0.1) and errors, TIMEOUT_S, "an error of the client")
    assert "SASL PLAIN mechanism handshake failed" in errors[0]
    assert "(client_id 'rdkafka', " in told(Mistake.SASL, PLAIN)


def test_a_java_client_fails_at_once(own_server: Server, class_path: str, tmp_path: Path, told: Told) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text(JAVA)
    connect = ("--bootstrap-server", own_server.bootstrap, "--command-config", str(properties))
    status, said = run_to_end(class_path, "TopicCommand", *connect, "--list", timeout_s=40)
    expected = "Unexpected handshake request with client mechanism PLAIN, enabled mechanisms are []"
    assert (status, expected in said) == (1, True), said
    told(Mistake.SASL, PLAIN)


def test_kafka_python(own_server: Server, told: Told) -> None:
    with pytest.raises(KafkaError):
        KafkaAdminClient(
            bootstrap_servers=own_server.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="u",
            sasl_plain_password="p",
            bootstrap_timeout_ms=2000,
        )
    told(Mistake.SASL, PLAIN)


def test_a_bare_token_of_gssapi(own_server: Server, told: Told) -> None:
    """A client of Apache Kafka 0.9 begins like this."""
    token = bytes.fromhex("6082026406092a864886f71201020201006e") + bytes(40)
    with Wire(own_server.host, own_server.port) as wire:
        wire.sendall(sized(token))
        with pytest.raises(ConnectionError):
            wire.frame()
    told(Mistake.GSSAPI)


@pytest.fixture
def guarded(new_server: Callable[..., Server]) -> Server:
    """A server whose only listener has SASL."""
    return new_server("--set", "sasl.enabled.mechanisms=SCRAM-SHA-256", listeners=["SASL_PLAINTEXT"]).start()


def warned(server: Server, mistake: Mistake, **details: object) -> None:
    wait_until(lambda: any(mistake.line(**details) in line for line in server.log), TIMEOUT_S, server.report)


def test_a_client_without_sasl_where_everybody_authenticates(guarded: Server) -> None:
    with pytest.raises(KafkaError):
        KafkaAdminClient(bootstrap_servers=guarded.bootstrap, bootstrap_timeout_ms=2000)
    details = {"listener": "SASL_PLAINTEXT", "protocol": "SASL_PLAINTEXT"}
    warned(guarded, Mistake.NO_LOGIN, api="Metadata", **details)


def test_another_mechanism(guarded: Server) -> None:
    with pytest.raises(KafkaError):
        KafkaAdminClient(
            bootstrap_servers=guarded.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="u",
            sasl_plain_password="p",
            bootstrap_timeout_ms=2000,
        )
    warned(guarded, Mistake.MECHANISM, listener="SASL_PLAINTEXT", mechanism="PLAIN", enabled="SCRAM-SHA-256")
