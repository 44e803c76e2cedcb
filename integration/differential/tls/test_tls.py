"""Who a client is by its certificate, what it sees where that is refused, and what tools print, on both."""

from __future__ import annotations

import itertools
import re
import socket
import ssl
import struct
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from integration.apache_kafka.tools import CONSOLE_CONSUMER
from integration.differential.tls.listening import (
    APACHE_KAFKA,
    FRIENDS,
    KSHIM,
    LISTENERS,
    LOGIN_MODULE,
    MALLORY,
    USER,
    USERS_PASSWORD,
    Certificates,
    Listening,
)
from kshim.certificates.authority import Authority, Issued
from kshim.certificates.directory import PASSWORD
from kshim.testing.wire import Wire, framed
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from schemas.registry import decode_response

_numbers = itertools.count(1)
TLS = [name for name, protocol in LISTENERS.items() if protocol == "SSL"]
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
TIMEOUT_S = 120


@pytest.fixture(params=[APACHE_KAFKA, KSHIM])
def listening(request: pytest.FixtureRequest, both: Mapping[str, Listening]) -> Listening:
    return both[request.param]


def context(certificates: Certificates, issued: Issued | None = None, **options: Any) -> ssl.SSLContext:
    """A client's, with a certificate, and with other attributes."""
    found = ssl.create_default_context(cadata=options.pop("cadata", certificates.authority.certificate_pem))
    if issued is not None:
        files = certificates.write("asking", issued)
        found.load_cert_chain(files["ssl.certificate.location"], files["ssl.key.location"])
    for name, value in options.items():
        setattr(found, name, value)
    return found


def create_topic(listening: Listening, listener: str, client: ssl.SSLContext) -> ErrorCode:
    """Create a topic as a client, and return the answer. Raises OSError, such as ssl.SSLError."""
    topic = CreatableTopic(name=f"t{next(_numbers)}", num_partitions=1, replication_factor=1)
    with (
        socket.create_connection(("localhost", listening.port(listener)), 10) as plain,
        client.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        connection.sendall(framed(5, CreateTopicsRequest(topics=(topic,), timeout_ms=10_000)))
        answers = connection.makefile("rb")
        size = answers.read(4)
        if not size:
            raise ConnectionResetError("closed")
        frame = answers.read(struct.unpack(">i", size)[0])
    (created,) = decode_response(ApiKey.CREATE_TOPICS, 5, frame)[1].topics
    return ErrorCode(created.error_code)


# ---- who a client is


@pytest.mark.parametrize("listener", TLS)
@pytest.mark.parametrize("name", FRIENDS)
def test_a_friend_is_known_by_its_certificate(
    listening: Listening, certificates: Certificates, listener: str, name: str
) -> None:
    """Its principal, as kshim names it, is a super user of both servers."""
    client = context(certificates, certificates.clients[name])
    assert create_topic(listening, listener, client) == ErrorCode.NONE


@pytest.mark.parametrize("listener", TLS)
def test_nobody_s_friend_may_do_nothing(
    listening: Listening, certificates: Certificates, listener: str
) -> None:
    client = context(certificates, certificates.clients[MALLORY])
    assert create_topic(listening, listener, client) == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_client_without_a_certificate_is_anonymous(
    listening: Listening, certificates: Certificates
) -> None:
    assert create_topic(listening, "REQUESTED", context(certificates)) == ErrorCode.NONE


# ---- what is refused


def _old(certificates: Certificates) -> ssl.SSLContext:
    return context(certificates, certificates.authority.client("CN=alice", days=-1))


def _foreign(certificates: Certificates) -> ssl.SSLContext:
    return context(certificates, Authority("CN=another").client("CN=alice"))


REFUSED: dict[str, tuple[str, Callable[[Certificates], ssl.SSLContext], str, str]] = {
    "no certificate": ("REQUIRED", context, "BAD_CERTIFICATE", "CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE"),
    "expired": ("REQUIRED", _old, "CERTIFICATE_UNKNOWN", "CERTIFICATE_EXPIRED"),
    "expired, and only requested": ("REQUESTED", _old, "CERTIFICATE_UNKNOWN", "CERTIFICATE_EXPIRED"),
    "foreign": ("REQUESTED", _foreign, "CERTIFICATE_UNKNOWN", "UNKNOWN_CA"),
}
"""The listener, the client, and what it is told by Apache Kafka and by kshim: see MEANT. TLS 1.2 has no alert
for a certificate that is missing."""


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("what", REFUSED)
def test_who_is_refused(
    listening: Listening, certificates: Certificates, what: str, version: ssl.TLSVersion
) -> None:
    """A refused client gets an alert of TLS."""
    listener, make_context, kafkas, ours = REFUSED[what]
    client = make_context(certificates)
    client.maximum_version = version
    with pytest.raises(ssl.SSLError) as caught:
        create_topic(listening, listener, client)
    alert = ours if listening.kind == KSHIM else kafkas
    assert re.fullmatch(f".*_ALERT_({alert})", caught.value.reason or "")


def test_a_client_of_an_old_version_is_refused(listening: Listening, certificates: Certificates) -> None:
    old = ssl.TLSVersion.TLSv1_1
    client = context(certificates, minimum_version=old, maximum_version=old)
    client.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version"):
        create_topic(listening, "REQUESTED", client)


def test_a_client_that_speaks_plainly_is_closed(listening: Listening) -> None:
    with (
        Wire("localhost", listening.port("REQUESTED")) as wire,
        pytest.raises(ConnectionError),
    ):
        wire.ask(0, ApiVersionsRequest())


# ---- configs


def described(listening: Listening) -> dict[str, tuple[Any, ...]]:
    """The properties of listeners and TLS, as DescribeConfigs returns them."""
    resource = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
    with Wire("localhost", listening.port("PLAINTEXT")) as wire:
        (result,) = wire.ask(4, request).results
    return {
        config.name: (config.value, config.is_sensitive, config.config_type, config.synonyms)
        for config in result.configs
        if re.match(r"ssl\.|listener\.name\.", config.name)
    }


def test_configs(both: Mapping[str, Listening]) -> None:
    kafka, kshim = described(both[APACHE_KAFKA]), described(both[KSHIM])
    assert kafka == kshim
    assert kshim["ssl.keystore.key"][:2] == (None, True)


# ---- Apache's tools


@pytest.mark.parametrize("listener", ["REQUIRED", "LOGIN"])
def test_console_producer_and_consumer(
    both: Mapping[str, Listening],
    certificates: Certificates,
    class_path: str,
    tmp_path: Path,
    listener: str,
) -> None:
    """With a client.properties as `kshim certificates` writes it; at LOGIN with SASL_SSL in it."""
    properties = write_properties(certificates, tmp_path, listener)
    for listening in both.values():
        common = ["--bootstrap-server", listening.at(listener), "--topic", f"console-{listener}"]
        assert printed([*common, "--command-config", str(properties)], class_path) == "first\nsecond\nthird\n"


def write_properties(certificates: Certificates, directory: Path, listener: str) -> Path:
    """A client.properties for a listener."""
    issued = certificates.clients["CN=alice"]
    (directory / "keys.p12").write_bytes(issued.pkcs12("alice", certificates.authority.certificate, PASSWORD))
    (directory / "trust.p12").write_bytes(certificates.authority.trust_store(PASSWORD))
    properties = directory / "client.properties"
    login = f'{LOGIN_MODULE} required username="{USER}" password="{USERS_PASSWORD}";'
    properties.write_text(
        f"security.protocol={LISTENERS[listener]}\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n"
        f"ssl.truststore.type=PKCS12\nssl.truststore.location={directory}/trust.p12\n"
        f"ssl.truststore.password={PASSWORD}\nssl.keystore.type=PKCS12\n"
        f"ssl.keystore.location={directory}/keys.p12\nssl.keystore.password={PASSWORD}\n"
        f"ssl.key.password={PASSWORD}\n"
    )
    return properties


def printed(common: Sequence[str], class_path: str) -> str:
    """Give the producer records, and return what the consumer prints."""
    run_tool(class_path, CONSOLE_PRODUCER, *common, given="first\nsecond\nthird\n")
    reading = ["--from-beginning", "--max-messages", "3", "--timeout-ms", "30000"]
    return run_tool(class_path, CONSOLE_CONSUMER, *common, *reading)


def run_tool(class_path: str, tool: str, *arguments: str, given: str = "") -> str:
    command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", class_path, tool, *arguments]
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
