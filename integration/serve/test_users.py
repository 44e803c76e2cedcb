"""Users of a running server: `kshim users`, the log, and that no password is shown anywhere."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaError

from integration.support.clients import Admin
from integration.support.server import COMMAND, Server, set_options
from kshim.testing import Cluster

LISTENER = "listener.name.sasl_plaintext."
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SECRETS = PLAIN, SCRAM, OTHER, WRONG = "plain-s3cret", "scram-s3cret", "other-s3cret", "wrong-s3cret"


@pytest.fixture
def server(new_server: Callable[..., Server]) -> Server:
    settings = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        f"{LISTENER}plain.sasl.jaas.config": f'{MODULE} user_alice="{PLAIN}";',
        "connection.failed.authentication.delay.ms": "0",
    }
    return new_server(
        *set_options(settings), "--log-level", "debug", listeners=["PLAINTEXT", "SASL_PLAINTEXT"]
    ).start()


def users(server: Server, *arguments: str, told: str = "") -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "users", *arguments, "--data-dir", str(server.data_dir)]
    return subprocess.run(command, input=told, capture_output=True, text=True, timeout=60, check=False)


def produce(server: Server, name: str, password: str, mechanism: str = "SCRAM-SHA-512") -> None:
    """Raises KafkaError."""
    producer = KafkaProducer(
        bootstrap_servers=f"{server.host}:{server.port + 1}",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=name,
        sasl_plain_password=password,
        max_block_ms=5000,
        bootstrap_timeout_ms=5000,
    )
    try:
        producer.send("letters", name.encode()).get(timeout=20)
    finally:
        producer.close(timeout=0)


def test_users_come_and_go_and_no_password_is_shown(server: Server, tmp_path: Path) -> None:
    printed = [users(server, "add", "bob", "--password-file", "-", told=SCRAM)]
    produce(server, "alice", PLAIN, "PLAIN")
    produce(server, "bob", SCRAM)
    printed.append(users(server, "add", "bob", "--password-file", "-", told=OTHER))
    produce(server, "bob", OTHER)
    with pytest.raises(KafkaError) as wrong:
        produce(server, "bob", WRONG)
    printed.append(users(server, "list", "--json"))
    assert [each["user"] for each in json.loads(printed[-1].stdout)] == ["bob", "bob"]
    printed.append(users(server, "remove", "bob"))
    with pytest.raises(KafkaError) as gone:
        produce(server, "bob", OTHER)
    assert [each.returncode for each in printed] == [0] * len(printed)
    assert [record.value for record in Cluster(server.bootstrap).consume("letters", 3)] == [
        b"alice",
        b"bob",
        b"bob",
    ]
    log = "\n".join(server.log)
    assert "authenticated as User:alice with PLAIN at listener SASL_PLAINTEXT" in log
    assert "authenticated as User:bob with SCRAM-SHA-512 at listener SASL_PLAINTEXT" in log
    assert "failed to authenticate with SCRAM-SHA-512 as 'bob'" in log
    shown = [log, str(wrong.value), str(gone.value), *(each.stdout + each.stderr for each in printed)]
    shown += [configs(server), *server.stdout]
    kept = b"".join(path.read_bytes() for path in server.data_dir.iterdir() if path.is_file())
    for secret in SECRETS:
        assert not any(secret in text for text in shown)
        assert secret.encode() not in kept


def test_users_stay_after_a_restart(server: Server) -> None:
    users(server, "add", "bob", "--password-file", "-", told=SCRAM)
    server.kill()
    server.restart()
    produce(server, "bob", SCRAM)


def configs(server: Server) -> str:
    """All configs of the broker, as an admin client gets them."""
    from kafka.admin import ConfigResource, ConfigResourceType

    admin = Admin(server.bootstrap)
    try:
        return repr(admin.client.describe_configs([ConfigResource(ConfigResourceType.BROKER, "1")]))
    finally:
        admin.close()
