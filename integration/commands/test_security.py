"""The commands at servers with TLS and logins, by a client.properties file; and the line for each mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from integration.clients.security.cells import CELLS, Cell
from integration.clients.security.world import BROKERS, Secured, secured
from integration.commands.running import Kshim
from integration.support.server import run_to_end
from integration.upstream.secured import cell_of, client

LOGIN = cell_of("LOGINTLS", "SCRAM-SHA-256")
NOT_TLS = (
    "speaks TLS at this port (security.protocol)",
    "closed the connection without an answer: is security.protocol right?",
)
"""Apache Kafka sends a TLS alert to who does not speak TLS; kshim closes the connection."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("certificates")
    done = run_to_end("certificates", "made", "--client", "alice", cwd=directory)
    assert done.returncode == 0, done.stderr
    return directory / "made"


@pytest.fixture(scope="module", params=list(BROKERS))
def at_hand(
    request: pytest.FixtureRequest,
    certificates: Path,
    class_path: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("server") / "data"
    with secured(request.param, directory, certificates) as found:
        yield found


class Connecting:
    """Runs commands at the listener of a cell."""

    def __init__(self, server: Secured, directory: Path) -> None:
        self._server = server
        self._directory = directory

    def at(self, cell: Cell, properties: Mapping[str, str] | None = None, listener: str = "") -> Kshim:
        """Return the commands, with a client.properties file in their environment."""
        given = client(cell, self._server.certificates) if properties is None else properties
        file = self._directory / "client.properties"
        file.write_text("".join(f"{name}={text}\n" for name, text in given.items()))
        address = self._server.addresses[listener or cell.listener]
        return Kshim(address, self._directory, KSHIM_CLIENT_CONFIG=str(file))

    def properties(self, cell: Cell, **changed: str) -> dict[str, str]:
        """The properties for a cell, some of them changed. An underscore stands for a dot."""
        return client(cell, self._server.certificates) | {
            name.replace("_", "."): text for name, text in changed.items()
        }


@pytest.fixture
def connecting(at_hand: Secured, tmp_path: Path) -> Connecting:
    return Connecting(at_hand, tmp_path)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_records_over_each_protocol(connecting: Connecting, topic: str, cell: Cell) -> None:
    kshim = connecting.at(cell)
    kshim("produce", topic, "--create", stdin=b"hello\n" * 20_000)
    assert kshim("consume", topic) == "hello\n" * 20_000


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"security_protocol": "SASL_PLAINTEXT"}, NOT_TLS),
        (
            {"security_protocol": "SSL"},
            "closed the connection without an answer: is security.protocol right?",
        ),
        ({"ssl_truststore_location": "/etc/hostname"}, "ssl.truststore.location: expected PEM or PKCS12 in"),
        ({"ssl_truststore_location": "/nowhere"}, "ssl.truststore.location: cannot read /nowhere: No such"),
        ({"sasl_mechanism": "GSSAPI"}, "sasl.mechanism: expected PLAIN or "),
        ({"sasl_jaas_config": "what"}, "sasl.jaas.config: "),
    ],
)
def test_mistakes(connecting: Connecting, changed: dict[str, str], line: str | tuple[str, ...]) -> None:
    kshim = connecting.at(LOGIN, connecting.properties(LOGIN, **changed))
    told = kshim.refusal("topic", "list")
    assert told.removeprefix(f"broker {kshim.bootstrap} ").startswith(line)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password(connecting: Connecting, mechanism: str) -> None:
    cell = cell_of("LOGINTLS", mechanism)
    properties = connecting.properties(cell)
    properties["sasl.jaas.config"] = properties["sasl.jaas.config"].replace("wonderland", "looking-glass")
    kshim = connecting.at(cell, properties)
    told = kshim.refusal("produce", "orders", stdin=b"a")
    assert told.startswith(f"broker {kshim.bootstrap} refuses the login by {mechanism}: ")
    assert "looking-glass" not in told


def test_a_certificate_that_is_not_trusted(connecting: Connecting) -> None:
    properties = {
        name: text for name, text in connecting.properties(LOGIN).items() if "truststore" not in name
    }
    kshim = connecting.at(LOGIN, properties)
    told = kshim.refusal("topic", "list")
    assert told.startswith(f"broker {kshim.bootstrap} shows a certificate that is not trusted: ")
    assert told.endswith("(ssl.truststore.location)")


def test_a_certificate_that_is_missing(connecting: Connecting) -> None:
    mutual = cell_of("MUTUAL")
    properties = {name: text for name, text in connecting.properties(mutual).items() if "key" not in name}
    told = connecting.at(mutual, properties).refusal("topic", "list")
    assert told.endswith("(ssl.keystore.location)")


def test_plain_text_where_there_is_tls_or_a_login(connecting: Connecting) -> None:
    told = connecting.at(LOGIN, {}).refusal("topic", "list")
    assert told.endswith(NOT_TLS)
    told = connecting.at(LOGIN, {}, "LOGIN").refusal("topic", "list")
    assert "security.protocol" in told


def test_tls_where_there_is_none(connecting: Connecting) -> None:
    told = connecting.at(LOGIN, None, "PLAINTEXT").refusal("topic", "list")
    assert told.endswith(" does not go on with TLS: is security.protocol right?")


def test_a_file_that_is_not_there(connecting: Connecting) -> None:
    told = connecting.at(LOGIN).refusal("topic", "list", "--client-config", "/nowhere")
    assert told == "--client-config /nowhere: No such file or directory"
