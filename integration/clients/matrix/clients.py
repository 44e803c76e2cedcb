"""The clients: how each one's driver is started, and what it needs on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from integration.clients.confluent.javascript.modules import NodeMissing, fetch_modules

DRIVERS = "integration.clients.matrix.drivers"


class Missing(Exception):
    """The machine lacks what a client needs; str() says what."""


@dataclass(frozen=True)
class Client:
    """One client library, in the version that is installed."""

    command: Callable[[], Sequence[str]]
    """The driver's command line, without the bootstrap address. Builds what must be built; raises Missing."""
    assignors: frozenset[str] = field(default=frozenset({"range", "roundrobin"}))
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Why not, by the name of each scenario that asks for what the client does not promise."""


def _python(module: str) -> Callable[[], Sequence[str]]:
    return lambda: (sys.executable, "-m", f"{DRIVERS}.{module}")


def _node(name: str) -> Callable[[], Sequence[str]]:
    directory = Path(__file__).with_name("drivers") / name

    def command() -> Sequence[str]:
        try:
            modules = fetch_modules(directory / "package.json", name)
        except NodeMissing as error:
            raise Missing(str(error)) from error
        return ("env", f"NODE_PATH={modules}", "node", str(directory / "driver.js"))

    return command


CLIENTS = {
    "aiokafka": Client(_python("aiokafka_client"), frozenset({"range", "roundrobin", "sticky"})),
    "confluent-kafka": Client(_python("confluent"), frozenset({"range", "roundrobin", "cooperative-sticky"})),
    "kafka-python": Client(_python("kafka_python"), frozenset({"range", "roundrobin", "sticky"})),
    "kafkajs": Client(_node("kafkajs"), frozenset({"RoundRobinAssigner"})),
    "platformatic": Client(
        _node("platformatic"),
        frozenset({"roundrobin"}),
        lacks={
            "test_a_topic_that_grows": "a member does not look for new partitions",
            "test_records_are_consumed_once_while_members_come_and_go": "a fetch in flight "
            "gives also records of partitions that another member has now",
            "test_an_offset_out_of_range_is_reset": "an offset out of range ends the stream",
        },
    ),
}
