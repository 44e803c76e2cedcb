"""Clients with certificates are themselves at the upstream, by the credentials in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from integration.apache_kafka.nodes import Nodes
from integration.clients.matrix.clients import CLIENTS
from integration.clients.matrix.driver import Driver
from integration.clients.security.cells import PASSWORD, USER, Cell
from integration.support.awaiting import wait_until
from integration.support.server import run_to_end, set_options
from integration.support.toolchain import or_skip
from integration.upstream.identified import CAROL, Identified, identified
from integration.upstream.may import only_sees, writes_and_reads
from integration.upstream.passed_logins import of_kshim
from integration.upstream.secured import BOB, arguments

ANSWER_S = 60
LISTENERS = ("LOGIN", "MUTUAL")
"""The upstream's: kshim logs in as its clients by SCRAM, or shows their certificates."""
CLIENTS_TRIED = ("kafka-python", "confluent-kafka", "kafka-clients-4.4")
NewDriver = Callable[..., Driver]


@pytest.fixture(scope="module")
def before(
    nodes: Nodes, tmp_path_factory: pytest.TempPathFactory, certificates: Path
) -> Iterator[Callable[[str], Identified]]:
    """before(listener): kshim in front of that listener of the nodes."""
    started: dict[str, Identified] = {}
    with ExitStack() as stack:

        def to(listener: str) -> Identified:
            if listener not in started:
                directory = tmp_path_factory.mktemp("kshim")
                started[listener] = stack.enter_context(identified(nodes, listener, directory, certificates))
            return started[listener]

        yield to


@pytest.fixture
def new_driver() -> Iterator[NewDriver]:
    """new_driver(client, kshim, user): a driver with the user's certificate."""
    drivers: list[Driver] = []

    def new(client: str, kshim: Identified, user: str) -> Driver:
        with or_skip(client):
            command = CLIENTS[client].command()
        environment = Cell("MUTUAL", "SSL").environment(kshim.certificates, user=user)
        drivers.append(Driver(command, kshim.address, environment))
        return drivers[-1]

    yield new
    for driver in drivers:
        driver.stop()


@pytest.mark.parametrize("listener", LISTENERS)
@pytest.mark.parametrize("client", CLIENTS_TRIED)
def test_the_upstreams_acls_decide(
    client: str, listener: str, before: Callable[[str], Identified], new_driver: NewDriver, orders: str
) -> None:
    """USER writes to the leaders at both nodes and reads in a group; BOB may do neither."""
    kshim = before(listener)
    writes_and_reads(new_driver(client, kshim, USER), orders, kshim.server.report)
    only_sees(new_driver(client, kshim, BOB), orders)


def is_written(kshim: Identified, user: str, topic: str) -> KafkaError | None:
    """Write a record as this user; return the error."""
    errors: list[KafkaError | None] = []
    producer = Producer(kshim.of_librdkafka(user) | {"message.timeout.ms": 3_000})
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    producer.flush(10)
    (error,) = errors
    return error


def test_a_client_without_an_identity_is_nobody_until_the_file_has_it(
    before: Callable[[str], Identified], orders: str
) -> None:
    kshim = before("LOGIN")
    error = is_written(kshim, CAROL, orders)
    assert error is not None
    assert error.code() == KafkaError._MSG_TIMED_OUT
    line = f"User:{CAROL} is not in upstream.identities.file"
    assert any(line in each for each in kshim.server.log), kshim.server.report()

    # The upstream has no user of this name.
    kshim.know(USER, BOB, CAROL)
    wait_until(lambda: "are used from now on" in "\n".join(kshim.server.log), 30, kshim.server.report)
    refusal = "refuses the login by SCRAM-SHA-512: Authentication failed"

    def is_refused() -> bool:
        assert is_written(kshim, CAROL, orders) is not None
        return refusal in "\n".join(kshim.server.log)

    wait_until(is_refused, ANSWER_S, kshim.server.report)
    assert is_written(kshim, USER, orders) is None

    kshim.know(BOB)
    wait_until(lambda: is_written(kshim, USER, orders) is not None, ANSWER_S, kshim.server.report)


@pytest.mark.parametrize("listener", LISTENERS)
def test_members_of_the_consumer_protocol_have_their_rights(
    listener: str, before: Callable[[str], Identified], orders: str
) -> None:
    kshim = before(listener)
    kshim.know(USER, BOB)
    options = {"group.id": f"g-{orders}", "group.protocol": "consumer", "auto.offset.reset": "earliest"}

    def joins(user: str) -> set[str] | int:
        """The topics that are assigned to the user's member, or the code of the error that it gets."""
        consumer = Consumer(kshim.of_librdkafka(user) | options)
        consumer.subscribe([orders])
        found: list[set[str] | int] = []

        def is_told() -> bool:
            message = consumer.poll(0.1)
            error = None if message is None else message.error()
            if error is not None or consumer.assignment():
                found.append(
                    {each.topic for each in consumer.assignment()} if error is None else error.code()
                )
            return bool(found)

        wait_until(is_told, ANSWER_S, kshim.server.report)
        consumer.close()
        return found[0]

    wait_until(lambda: is_written(kshim, USER, orders) is None, ANSWER_S, kshim.server.report)
    assert joins(USER) == {orders}
    assert joins(BOB) == KafkaError.GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("table", "options", "line"),
    [
        ("alice.sasl.jaas.config=no module", {}, "alice.sasl.jaas.config: "),
        ("alice.sasl.mechanism=PLAIN", {}, "alice.sasl.jaas.config: expected, for PLAIN: "),
        ("sasl.jaas.config=x", {}, "sasl.jaas.config: expected a name, a dot, and one of "),
        (None, {}, "cannot read "),
        (
            "",
            {"upstream.sasl.pass.through.enable": "true"},
            "expected upstream.sasl.pass.through.enable to ",
        ),
        ("", {"upstream.security.protocol": "PLAINTEXT"}, "expected upstream.security.protocol to be SSL, "),
        (
            "",
            {"listener.security.protocol.map": "CLEAR:PLAINTEXT"},
            "expected credentials of ANONYMOUS, ",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    table: str | None, options: dict[str, str], line: str, tmp_path: Path, certificates: Path
) -> None:
    file = tmp_path / "identities.properties"
    if table is not None:
        file.write_text(table)
    properties = {
        "listener.security.protocol.map": "CLEAR:SASL_PLAINTEXT",
        "listener.name.clear.plain.sasl.jaas.config": of_kshim("SASL_PLAINTEXT", certificates)[
            "sasl.jaas.config"
        ],
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "upstream.identities.file": str(file),
        **options,
    }
    told = of_kshim("SASL_PLAINTEXT", certificates)
    done = run_to_end(
        *("serve", "--listen", "CLEAR://127.0.0.1:0", "--data-dir", ":memory:"),
        *arguments(tmp_path, "127.0.0.1:1", told, *set_options(properties)),
        cwd=tmp_path,
    )
    found = [each for each in done.stderr.splitlines() if each.startswith("kshim: ")]
    assert len(found) == 1
    assert found[0].startswith(f"kshim: upstream.identities.file: {line}")
    assert done.returncode == 2
    assert PASSWORD not in found[0]
