"""Clients that are sent to an address where no broker is: the log names it after a few attempts."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer

from integration.apache_kafka.jars import VERSION
from integration.java.tool import Tool
from integration.support.awaiting import wait_until
from integration.support.ports import Slot
from integration.support.server import Server
from kshim.callers.arrivals import LEAST_S

TIMEOUT_S = 40
WARNING = "WARNING"


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address at which nobody listens; the slot keeps others away from it."""
    slot = Slot()
    yield f"127.0.0.1:{slot.port}"
    del slot


@pytest.fixture
def misplaced(new_server: Callable[..., Server], nowhere: str) -> Server:
    return new_server("--advertise", nowhere).start()


def warning(server: Server) -> str:
    """The only warning, once there is one."""
    wait_until(lambda: _warnings(server), TIMEOUT_S, server.report)
    (line,) = _warnings(server)
    return line


def _warnings(server: Server) -> list[str]:
    return [line for line in server.log if WARNING in line]


def expected(nowhere: str) -> str:
    return (
        rf"it asked \d+ times in \d+ s where the brokers are, and never came to {re.escape(nowhere)}: "
        r"if clients cannot reach that address, correct advertised.listeners \(--advertise\)$"
    )


def test_a_producer_of_librdkafka(misplaced: Server, nowhere: str) -> None:
    """A producer now and then gives up its bootstrap connection, asks no more, and cannot be noticed."""
    producers = [Producer({"bootstrap.servers": misplaced.bootstrap, "client.id": "lost"}) for _ in range(6)]
    for producer in producers:
        producer.produce("t", b"v")
    line = warning(misplaced)
    assert "(client_id 'lost', confluent-kafka-python " in line
    assert re.search(expected(nowhere), line), line
    for producer in producers:
        producer.purge()


def test_a_consumer_of_librdkafka(misplaced: Server, nowhere: str) -> None:
    """A consumer asks for its coordinator again and again, and waits with its topics until it has one.

    It gives up its bootstrap connection more rarely than a producer.
    """
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            consumer = Consumer({"bootstrap.servers": misplaced.bootstrap, "group.id": "lost"})
            stack.enter_context(contextlib.closing(consumer)).subscribe(["t"])
        assert re.search(expected(nowhere), warning(misplaced))


@pytest.mark.parametrize("name", ["VerifiableConsumer", "VerifiableProducer"])
def test_a_java_client(misplaced: Server, nowhere: str, run_tool: Callable[..., Tool], name: str) -> None:
    group = ("--group-id", "lost") if name == "VerifiableConsumer" else ()
    run_tool(name, "--bootstrap-server", misplaced.bootstrap, "--topic", "t", *group)
    line = warning(misplaced)
    assert f"apache-kafka-java {VERSION}" in line
    assert re.search(expected(nowhere), line), line


def test_a_client_that_comes_is_worth_no_line(own_server: Server, topic: str) -> None:
    """It asks for its topic as often as one that cannot come, but it also sends a record."""
    lister = Producer({"bootstrap.servers": own_server.bootstrap})
    began = time.monotonic()
    while time.monotonic() < began + LEAST_S + 1:
        lister.list_topics(topic, timeout=TIMEOUT_S)
        lister.produce(topic, b"v")
        assert lister.flush(TIMEOUT_S) == 0
    assert _warnings(own_server) == []
