"""Programs that speak TLS, HTTP or anything else to a Kafka listener."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from integration.java.tool import run_to_end
from integration.mistakes.conftest import TIMEOUT_S, Told
from integration.support.clients import Admin
from integration.support.server import Server
from kshim.callers.mistake import Mistake


def run(*command: str) -> subprocess.CompletedProcess[str]:
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def exchange(server: Server, data: bytes) -> bytes:
    """The server's answer to these bytes before it closes the connection."""
    heard = bytearray()
    with socket.create_connection((server.host, server.port), TIMEOUT_S) as connection:
        connection.sendall(data)
        while chunk := connection.recv(4096):
            heard += chunk
    return bytes(heard)


# ---- TLS


def test_openssl_sees_the_connection_end(own_server: Server, told: Told) -> None:
    done = run("openssl", "s_client", "-connect", own_server.bootstrap)
    assert "no peer certificate available" in done.stdout
    told(Mistake.TLS)


def test_pythons_ssl_notices_that_the_connection_has_ended(own_server: Server, told: Told) -> None:
    context = ssl.create_default_context()
    with (
        socket.create_connection((own_server.host, own_server.port), TIMEOUT_S) as connection,
        pytest.raises(ssl.SSLZeroReturnError),
    ):
        context.wrap_socket(connection, server_hostname="localhost")
    told(Mistake.TLS)


def test_librdkafka_with_tls_asks_whether_the_listener_is_plain(own_server: Server, told: Told) -> None:
    errors: list[str] = []
    admin = AdminClient(
        {
            "bootstrap.servers": own_server.bootstrap,
            "security.protocol": "SSL",
            "error_cb": lambda error: errors.append(str(error)),
        }
    )
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=2)
    admin.poll(0)
    assert any("connecting to a PLAINTEXT broker listener?" in error for error in errors), errors
    told(Mistake.TLS)


def test_a_java_client_with_tls_fails_at_once(
    own_server: Server, class_path: str, tmp_path: Path, told: Told
) -> None:
    """Its call would take a minute if the connection were only closed."""
    properties = tmp_path / "client.properties"
    properties.write_text("security.protocol=SSL\n")
    connect = ("--bootstrap-server", own_server.bootstrap, "--command-config", str(properties))
    status, said = run_to_end(class_path, "TopicCommand", *connect, "--list", timeout_s=40)
    assert (status, "SSL handshake failed" in said) == (1, True), said
    told(Mistake.TLS)


def test_kafka_python_with_tls(own_server: Server, told: Told) -> None:
    with pytest.raises(KafkaError):
        KafkaAdminClient(
            bootstrap_servers=own_server.bootstrap, security_protocol="SSL", bootstrap_timeout_ms=2000
        )
    told(Mistake.TLS)


# ---- HTTP


def test_curl_shows_who_answered(own_server: Server, told: Told) -> None:
    done = run("curl", "-sS", "-i", f"http://{own_server.bootstrap}/")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("HTTP/1.1 400 Bad Request")
    assert done.stdout.endswith("This port is a Kafka listener. It does not speak HTTP.\n")
    told(Mistake.HTTP)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_each_method_of_http(own_server: Server, told: Told, method: str) -> None:
    request = urllib.request.Request(f"http://{own_server.bootstrap}/topics", b"{}", method=method)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=TIMEOUT_S)
    assert caught.value.code == 400
    caught.value.close()
    told(Mistake.HTTP)


# ---- others


@pytest.mark.parametrize(
    ("data", "answer", "mistake", "text"),
    [
        (b"PROXY TCP4 10.0.0.7 10.0.0.1 51000 9092\r\n", b"", Mistake.PROXY, ""),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c", b"", Mistake.PROXY, ""),
        (b"*1\r\n$4\r\nPING\r\n", b"-ERR ", Mistake.REDIS, ""),
        (b"ruok", b"", Mistake.ZOOKEEPER, ""),
        (b"SSH-2.0-OpenSSH_9.2\r\n", b"", Mistake.TEXT, "SSH-2.0-OpenSSH_9.2\r\n"),
    ],
)
def test_others(
    own_server: Server, told: Told, data: bytes, answer: bytes, mistake: Mistake, text: str
) -> None:
    assert exchange(own_server, data)[: len(answer) or None] == answer
    told(mistake, {"text": text})


def test_a_port_check_is_not_worth_a_line(own_server: Server) -> None:
    for _ in range(3):
        socket.create_connection((own_server.host, own_server.port), TIMEOUT_S).close()
    with contextlib.closing(Admin(own_server.bootstrap)) as admin:
        admin.create_topic("served")
    assert [line for line in own_server.log if " INFO " not in line] == []
