"""kshim in front of Apache Kafka with TLS, SASL and ACLs: what works, and the errors where it does not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import TopicAuthorizationFailedError

from integration.apache_kafka.tools import Tools
from integration.clients.security.cells import CELLS, PASSWORD, USER, WRONG, Cell, token
from integration.clients.security.world import Secured, set_password
from integration.differential.stories.sasl_settings import MODULES
from integration.support.awaiting import wait_until
from integration.support.clients import new_consumer, new_producer, offset_and_metadata, until_served
from integration.support.ports import Slot
from integration.support.readme import ROOT
from integration.support.server import Server, run_to_end
from integration.upstream.secured import (
    BOB,
    SESSION_MS,
    arguments,
    cell_of,
    client,
    login,
    new_kshim,
    upstream,
)
from kshim.configs.properties_file import parse_properties
from kshim.configs.upstream import of_client, upstream_security

LARGE_BYTES = 900_000
PLAIN, SCRAM = cell_of("LOGIN", "PLAIN"), cell_of("LOGIN", "SCRAM-SHA-256")
TLS, MUTUAL = cell_of("TLS"), cell_of("MUTUAL")
ACL_TOOL = "org.apache.kafka.tools.AclCommand"
NewKshim = Callable[..., Server]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("certificates") / "made"
    command = [sys.executable, "-m", "kshim", "certificates", str(directory), "--client", USER]
    subprocess.run(command, check=True, capture_output=True)
    return directory


@pytest.fixture(scope="module")
def kafka(class_path: str, tmp_path_factory: pytest.TempPathFactory, certificates: Path) -> Iterator[Secured]:
    with upstream(tmp_path_factory.mktemp("upstream") / "data", certificates) as found:
        set_password(found.server, BOB, PASSWORD)
        yield found


@pytest.fixture
def new(kafka: Secured, tmp_path: Path) -> Iterator[NewKshim]:
    """new(cell, **of_client): kshim in front of the cell's listener; `properties` instead of the cell's."""
    started: list[Server] = []

    def start(cell: Cell, properties: dict[str, str] | None = None, **of_client: str) -> Server:
        properties = properties or client(cell, kafka.certificates, **of_client)
        kshim = new_kshim(tmp_path, kafka.addresses[cell.listener], properties, "--log-level", "debug")
        started.append(kshim.start())
        return kshim

    yield start
    for kshim in started:
        if kshim.running:
            kshim.kill()


def is_few(cell: Cell) -> bool:
    return cell.listener == "MUTUAL" or str(cell) == "SASL_SSL, SCRAM-SHA-512"


@pytest.mark.parametrize(
    "cell",
    [pytest.param(cell, marks=[pytest.mark.few] if is_few(cell) else []) for cell in CELLS],
    ids=str,
)
def test_a_client_works(cell: Cell, new: NewKshim, topic: str) -> None:
    """The brokers' addresses are those of the listener that kshim has come by: each has another security."""
    kshim = new(cell)
    works(kshim, topic)
    log = "\n".join(kshim.log)
    assert PASSWORD not in log
    assert "Traceback" not in log
    assert "client.properties: without effect here: client.id" in log


def works(kshim: Server, topic: str) -> None:
    """A client produces, consumes and commits in a group."""
    producer = new_producer(kshim.bootstrap)
    for number in range(20):
        until_served(lambda number=number: producer.send(topic, b"%d" % number).get(timeout=20))
    producer.close()
    for expected in (range(10), range(10, 20)):
        consumer = new_consumer(kshim.bootstrap, topic, group_id=f"g-{topic}", consumer_timeout_ms=20_000)
        found = [int(record.value) for _, record in zip(expected, consumer, strict=False)]
        assert found == list(expected)
        consumer.commit({TopicPartition(topic, 0): offset_and_metadata(found[-1] + 1)})
        consumer.close()


def test_logins_are_renewed_between_requests(new: NewKshim, topic: str) -> None:
    """No connection is closed, neither kshim's own nor a client's, though each login counts for seconds."""
    kshim = new(SCRAM)
    producer = new_producer(kshim.bootstrap, retries=0, linger_ms=0)
    consumer = new_consumer(kshim.bootstrap, group_id=f"g-{topic}")
    until_served(lambda: producer.send(topic, b"first").get(timeout=20))
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    until_s = time.monotonic() + 3 * SESSION_MS / 1000
    number = 0
    while time.monotonic() < until_s:
        producer.send(topic, b"%d" % number, partition=0).get(timeout=5)
        consumer.poll(timeout_ms=50)
        consumer.commit({partition: offset_and_metadata(number)})
        number += 1
    assert consumer.committed(partition) == number - 1
    producer.close()
    consumer.close()
    assert "closed the connection" not in "\n".join(kshim.log)
    assert number > 50


def test_large_records_pass_encrypted(new: NewKshim, topic: str) -> None:
    values = [bytes([number]) * LARGE_BYTES for number in range(20)]
    kshim = new(cell_of("LOGINTLS", "PLAIN"))
    producer = new_producer(kshim.bootstrap, max_request_size=LARGE_BYTES + 1000)
    sent = [producer.send(topic, value, partition=0) for value in values]
    producer.flush()
    assert all(each.succeeded() for each in sent)
    producer.close()
    consumer = new_consumer(
        kshim.bootstrap,
        max_partition_fetch_bytes=50 * LARGE_BYTES,
        fetch_max_bytes=50 * LARGE_BYTES,
        consumer_timeout_ms=20_000,
    )
    consumer.assign([TopicPartition(topic, 0)])
    assert [record.value for _, record in zip(values, consumer, strict=False)] == values
    consumer.close()


class _Endpoint(BaseHTTPRequestHandler):
    """Gives unsecured tokens."""

    def do_POST(self) -> None:
        body = json.dumps({"access_token": token(), "expires_in": 3600}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def test_tokens_come_from_an_endpoint(new: NewKshim, topic: str) -> None:
    with HTTPServer(("127.0.0.1", 0), _Endpoint) as endpoint:
        thread = threading.Thread(target=endpoint.serve_forever)
        thread.start()
        properties = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{endpoint.server_port}/token",
            "sasl.jaas.config": f'{MODULES}oauthbearer.OAuthBearerLoginModule required clientId="k" '
            'clientSecret="s3cret";',
        }
        kshim = new(cell_of("LOGIN", "OAUTHBEARER"), properties)
        endpoint.shutdown()
        thread.join()
    works(kshim, topic)
    assert "s3cret" not in "\n".join(kshim.log)


# ---- what does not work, at the start


def refused(tmp_path: Path, address: str, properties: dict[str, str]) -> str:
    """The one line that kshim ends with."""
    done = run_to_end(
        *("serve", "--listen", "127.0.0.1:0", "--data-dir", ":memory:"),
        *arguments(tmp_path, address, properties, "--set", "upstream.start.timeout.ms=1000"),
        cwd=tmp_path,
        timeout_s=60,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("kshim: "))
    assert WRONG not in done.stderr
    return line


BROKER = "kshim: upstream broker ADDRESS "
PROTOCOL = ": is upstream.security.protocol right?"


@pytest.mark.parametrize(
    ("listener", "properties", "line"),
    [
        (
            "LOGIN",
            {"security.protocol": "SASL_PLAINTEXT", **login("PLAIN", USER, WRONG)},
            "refuses the login by PLAIN: Authentication failed: Invalid username or password",
        ),
        (
            "LOGIN",
            {"security.protocol": "SASL_PLAINTEXT", **login("SCRAM-SHA-512", USER, WRONG)},
            "refuses the login by SCRAM-SHA-512: Authentication failed during authentication due to invalid "
            "credentials with SASL mechanism SCRAM-SHA-512",
        ),
        (
            "TLS",
            {"security.protocol": "SSL"},
            "shows a certificate that is not trusted: self-signed certificate in certificate chain "
            "(upstream.ssl.truststore.location)",
        ),
        ("TLS", {"security.protocol": "PLAINTEXT"}, "speaks TLS at this port (upstream.security.protocol)"),
        (
            "PLAINTEXT",
            {"security.protocol": "SSL"},
            f"closed the connection during the handshake of TLS{PROTOCOL}",
        ),
        ("LOGIN", {"security.protocol": "PLAINTEXT"}, f"closed the connection without an answer{PROTOCOL}"),
        (
            "PLAINTEXT",
            {"security.protocol": "SASL_PLAINTEXT", **login("PLAIN", USER, WRONG)},
            "takes no login at this listener (upstream.security.protocol)",
        ),
        (
            "LOGINTLS",
            {"security.protocol": "SASL_PLAINTEXT", **login("PLAIN", USER, WRONG)},
            "speaks TLS at this port (upstream.security.protocol)",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_one_line(
    listener: str, properties: dict[str, str], line: str, kafka: Secured, tmp_path: Path
) -> None:
    address = kafka.addresses[listener]
    said = refused(tmp_path, address, properties)
    # A broker that waits for a login answers ApiVersions, so kshim goes on to ask for its topic.
    said = said.replace("the upstream's topic __kshim_groups: ", "")
    assert said == BROKER.replace("ADDRESS", address) + line


def test_a_client_without_a_certificate(kafka: Secured, tmp_path: Path) -> None:
    line = refused(tmp_path, kafka.addresses["MUTUAL"], client(TLS, kafka.certificates))
    assert "does not go on with TLS: " in line
    assert line.endswith(" (upstream.ssl.keystore.location)")


def test_a_host_that_the_certificate_does_not_name(
    kafka: Secured, new: NewKshim, tmp_path: Path, topic: str
) -> None:
    properties = client(TLS, kafka.certificates)
    address = kafka.addresses["TLS"].replace("127.0.0.1", "127.1")
    assert refused(tmp_path, address, properties) == (
        f"kshim: upstream broker {address} shows a certificate of another host: Hostname mismatch, "
        "certificate is not valid for '127.1' (upstream.ssl.endpoint.identification.algorithm)"
    )
    kshim = new_kshim(tmp_path, address, properties | {"ssl.endpoint.identification.algorithm": ""}).start()
    works(kshim, topic)
    kshim.kill()


def test_a_mechanism_that_is_not_enabled(kafka: Secured, tmp_path: Path, certificates: Path) -> None:
    slot = Slot()
    options = [
        *("--listen", f"LOGIN://127.0.0.1:{slot.port}", "--set", "sasl.enabled.mechanisms=PLAIN"),
        *("--set", "listener.security.protocol.map=LOGIN:SASL_PLAINTEXT"),
        *("--set", f'plain.sasl.jaas.config={MODULES}plain.PlainLoginModule required user_a="b";'),
    ]
    server = Server(tmp_path / "plain", options).start_at(slot)
    properties = client(SCRAM, certificates)
    line = refused(tmp_path, server.bootstrap, properties)
    server.kill()
    assert line.endswith(" does not take SCRAM-SHA-256 (upstream.sasl.mechanism); it takes PLAIN")


# ---- ACLs


PAGE = (ROOT / "docs" / "upstream.md").read_text()
ACLS = [
    found.replace("\\\n", " ").split()[1:]
    for found in re.findall(r"^kafka-acls.sh (?:.*\\\n)*.*", PAGE, re.MULTILINE)
]
"""The arguments of each kafka-acls of the page."""


@pytest.fixture(scope="module")
def tools(class_path: str) -> Iterator[Tools]:
    tools = Tools(class_path)
    yield tools
    tools.close()


def test_what_acls_have_to_allow(
    kafka: Secured, tools: Tools, new: NewKshim, tmp_path: Path, topic: str
) -> None:
    """kshim logs each missing right at the start; clients get the upstream's refusals."""
    cell = cell_of("LOGIN", "SCRAM-SHA-512")
    new(cell).stop()  # the topic is there
    told: list[str] = []

    def is_told(last: str) -> Callable[[], bool]:  # a broker hears of ACLs a little later
        def look() -> bool:
            of_bob = client(cell, kafka.certificates, user=BOB)
            told.append(refused(tmp_path, kafka.addresses["LOGIN"], of_bob))
            return told[-1].endswith(last)

        return look

    def allow(arguments: list[str]) -> None:
        command = " ".join(arguments).replace("--command-config admin.properties ", "")
        ours = {"kafka1:9093": kafka.server.bootstrap, "User:kshim": f"User:{BOB}"}
        for word, own in {**ours, "orders": topic, "billing": f"g-{topic}"}.items():
            command = command.replace(word, own)
        done = tools.run(ACL_TOOL, *command.split())
        assert done.status == 0, done.text

    of_topic, of_group, of_clients = ACLS
    refusal = "kshim needs DESCRIBE, READ and WRITE on the topic: TOPIC_AUTHORIZATION_FAILED"
    wait_until(is_told(refusal), 60, lambda: str(told))
    allow(of_topic)
    wait_until(is_told("ACLs are in the way: kshim needs READ on group __kshim"), 60, lambda: str(told))
    allow(of_group)
    allow(of_clients)
    kshim = new(cell, user=BOB)
    works(kshim, topic)
    producer = new_producer(kshim.bootstrap)
    with pytest.raises(TopicAuthorizationFailedError):
        producer.send(f"not-{topic}", b"x").get(timeout=20)
    producer.close()


def test_the_client_properties_of_the_page() -> None:
    block, *_ = re.findall(r"^```properties\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    properties, others = of_client(parse_properties(block))
    security = upstream_security(properties)
    assert others == []
    assert security.login is not None
    assert security.login.options["username"] == "kshim"


# ---- later


def test_a_password_that_is_changed(kafka: Secured, new: NewKshim, topic: str) -> None:
    """Open connections stay until the login is renewed. Then kshim logs the error, and goes on."""
    kshim = new(SCRAM)
    works(kshim, topic)
    set_password(kafka.server, USER, WRONG)
    try:
        wait_until(
            lambda: "refuses the login by SCRAM-SHA-256" in "\n".join(kshim.log), 30, lambda: kshim.report()
        )
        assert kshim.running
    finally:
        set_password(kafka.server, USER, PASSWORD)
    works(kshim, f"{topic}-again")
    log = "\n".join(line for line in kshim.log if " DEBUG " not in line)
    assert PASSWORD not in log
    assert log.count("the upstream does not answer: ") <= 2


def test_a_changed_password_needs_no_restart(
    kafka: Secured, new: NewKshim, topic: str, tmp_path: Path
) -> None:
    """It is read from the file of --upstream-config; open connections log in with it when that is due."""
    kshim = new(SCRAM)
    works(kshim, topic)
    changed = "another password"
    try:
        file = tmp_path / "client.properties"
        set_password(kafka.server, USER, changed)
        file.write_text(file.read_text().replace(f'password="{PASSWORD}"', f'password="{changed}"'))
        wait_until(lambda: "are used from now on" in "\n".join(kshim.log), 30, kshim.report)
        works(kshim, f"{topic}-again")
    finally:
        set_password(kafka.server, USER, PASSWORD)
    assert changed not in "\n".join(kshim.log)
