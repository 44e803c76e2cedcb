"""Logins at the upstream through kshim: its errors, its sessions, and what kshim refuses at the start."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from integration.apache_kafka.nodes import Nodes
from integration.clients.security.cells import PASSWORD, USER, WRONG
from integration.support.server import run_to_end, set_options
from integration.upstream.passed_logins import (
    NODES,
    NewDriver,
    Passing,
    address_of,
    log_in,
    of_kshim,
    of_librdkafka,
)
from integration.upstream.secured import BOB, SESSION_MS, arguments
from kshim.testing.wire import Wire
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.metadata import MetadataRequest
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest
from schemas.messages.sasl_handshake import SaslHandshakeRequest

ANSWER_S = 60
RIGHT = f"\0{USER}\0{PASSWORD}".encode()


def test_tls_ends_at_kshim(kshim: Passing, new_driver: NewDriver, orders: str) -> None:
    """SCRAM's exchange passes, though the client speaks TLS and the upstream's listener does not."""
    driver = new_driver("confluent-kafka", kshim, "SECRET", "SCRAM-SHA-256")
    driver.produce(topic=orders, records=[{"key": "k", "value": "v", "partition": 1}])


def said(wire: Wire, mechanism: str, first: bytes) -> tuple[Any, ...]:
    """What a broker answers to a handshake and a token, until the connection is closed."""
    answer = wire.ask(1, SaslHandshakeRequest(mechanism=mechanism))
    told: list[Any] = [answer.error_code, sorted(answer.mechanisms)]
    if not answer.error_code:
        authenticated = wire.ask(2, SaslAuthenticateRequest(auth_bytes=first))
        told += [authenticated.error_code, authenticated.error_message]
        if not authenticated.error_code:
            told.append(bytes(authenticated.auth_bytes)[:1])
            authenticated = wire.ask(2, SaslAuthenticateRequest(auth_bytes=b"\x01"))
            told += [authenticated.error_code, authenticated.error_message]
    try:
        told.append(wire.read(1))
    except ConnectionError:
        told.append("closed")
    return tuple(told)


@pytest.mark.parametrize(
    ("mechanism", "first"),
    [
        ("PLAIN", f"\0{USER}\0{WRONG}".encode()),
        ("PLAIN", f"{BOB}\0{USER}\0{PASSWORD}".encode()),
        ("PLAIN", b"nonsense"),
        ("PLAIN", b""),
        ("SCRAM-SHA-256", b"n,,n=nobody,r=nonce"),
        ("SCRAM-SHA-512", b"n,,n=alice,r=nonce"),
        ("SCRAM-SHA-512", b"nonsense"),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer nonsense\x01\x01"),
        ("OAUTHBEARER", b"\xff\xff"),
        ("GSSAPI", b"nonsense"),
        ("x" * 300, b""),
    ],
    ids=str,
)
def test_a_refusal_is_the_upstreams(nodes: Nodes, kshim: Passing, mechanism: str, first: bytes) -> None:
    """Code, text and what follows are the same as without kshim."""
    host, _, port = address_of(nodes, "LOGIN").rpartition(":")
    with Wire(host, int(port)) as direct, kshim.wire() as passed:
        assert said(passed, mechanism, first) == said(direct, mechanism, first)


def test_nothing_is_answered_before_the_login(kshim: Passing) -> None:
    for ask in (
        lambda wire: wire.ask(9, MetadataRequest(topics=())),
        lambda wire: wire.ask(4, HeartbeatRequest(group_id="g-x", generation_id=1, member_id="m")),
        lambda wire: said(wire, "SCRAM-SHA-256", b"n,,n=alice,r=nonce") and wire.ask(9, MetadataRequest()),
    ):
        with kshim.wire() as wire, pytest.raises(ConnectionError):
            ask(wire)


def test_an_old_handshake_is_followed_by_bare_tokens(kshim: Passing) -> None:
    with kshim.wire() as wire:
        assert not wire.ask(0, SaslHandshakeRequest(mechanism="PLAIN")).error_code
        wire.sendall(len(RIGHT).to_bytes(4) + RIGHT)
        assert wire.frame() == b""
        assert wire.ask(9, MetadataRequest(topics=())).brokers


def test_a_session_ends_and_is_renewed_at_the_upstream(kshim: Passing) -> None:
    with kshim.wire() as wire, kshim.wire() as silent:
        told = log_in(wire, mechanism="SCRAM-SHA-256")
        log_in(silent, mechanism="SCRAM-SHA-256")
        assert SESSION_MS - 1000 < told.session_lifetime_ms <= SESSION_MS
        until_s = time.monotonic() + 2 * SESSION_MS / 1000
        while time.monotonic() < until_s:
            assert log_in(wire, mechanism="SCRAM-SHA-256").session_lifetime_ms > 0
            assert wire.ask(9, MetadataRequest(topics=())).brokers
            time.sleep(1.1)  # Kafka refuses another login within a second
        with pytest.raises(ConnectionError):
            silent.ask(4, HeartbeatRequest(group_id="g-x", generation_id=1, member_id="m"))
    with kshim.wire() as wire:
        log_in(wire, mechanism="SCRAM-SHA-256")
        time.sleep(1.1)
        with pytest.raises(AssertionError, match="Cannot change principals"):
            log_in(wire, user=BOB, mechanism="SCRAM-SHA-256")


def test_librdkafka_stays_connected_while_its_sessions_end(kshim: Passing, orders: str) -> None:
    """It authenticates again, on connections on which it also has a group's requests."""
    options = of_librdkafka(kshim, "SCRAM-SHA-256")
    producer = Producer(options | {"message.send.max.retries": 0, "linger.ms": 0})
    consumer = Consumer(options | {"group.id": f"g-{orders}", "auto.offset.reset": "earliest"})
    consumer.subscribe([orders])
    faults: list[KafkaError] = []
    until_s, sent, read = time.monotonic() + 3 * SESSION_MS / 1000, 0, 0
    while time.monotonic() < until_s or read < sent:
        assert time.monotonic() < until_s + ANSWER_S, (read, sent, kshim.server.report())
        if time.monotonic() < until_s:
            producer.produce(orders, b"%d" % sent, partition=sent % NODES, on_delivery=noting(faults))
            sent += 1
        producer.poll(0.05)
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            read += 1
            consumer.commit(message, asynchronous=False)
    assert producer.flush(20) == 0
    consumer.close()
    assert faults == []
    assert "has not authenticated again" not in "\n".join(kshim.server.log)


def noting(faults: list[KafkaError]) -> Callable[..., None]:
    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            faults.append(error)

    return delivered


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            {"listener.security.protocol.map": "CLEAR:SASL_PLAINTEXT,OPEN:PLAINTEXT"},
            "upstream.sasl.pass.through.enable: expected SASL at every listener, but OPEN has PLAINTEXT",
        ),
        (
            {"upstream.security.protocol": "PLAINTEXT"},
            "upstream.sasl.pass.through.enable: expected upstream.security.protocol to be SASL_PLAINTEXT or "
            "SASL_SSL, too",
        ),
    ],
    ids=["listener", "upstream"],
)
def test_nobody_comes_in_without_a_login(
    options: dict[str, str], line: str, tmp_path: Path, certificates: Path
) -> None:
    listeners = "CLEAR://127.0.0.1:0"
    if "OPEN" in options.get("listener.security.protocol.map", ""):
        listeners += ",OPEN://127.0.0.1:0"
    properties = {
        "listener.security.protocol.map": "CLEAR:SASL_PLAINTEXT",
        "upstream.sasl.pass.through.enable": "true",
        **options,
    }
    told = of_kshim("SASL_PLAINTEXT", certificates)
    done = run_to_end(
        *("serve", "--listen", listeners, "--data-dir", ":memory:"),
        *arguments(tmp_path, "127.0.0.1:1", told, *set_options(properties)),
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert [each for each in done.stderr.splitlines() if each.startswith("kshim: ")] == [f"kshim: {line}"]
