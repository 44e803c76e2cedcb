"""The clients: how each one's driver is started, and what it needs on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

DRIVERS = "integration.clients.matrix.drivers"


class Missing(Exception):
    """The machine lacks what a client needs; str() says what."""


@dataclass(frozen=True)
class Client:
    """One client library, in the version that is installed."""

    command: Callable[[], Sequence[str]]
    """The driver's command line, without the bootstrap address. Builds what must be built; raises Missing."""
    assignors: frozenset[str] = field(default=frozenset({"range", "roundrobin"}))


def _python(module: str) -> Callable[[], Sequence[str]]:
    return lambda: (sys.executable, "-m", f"{DRIVERS}.{module}")


CLIENTS = {
    "aiokafka": Client(_python("aiokafka_client"), frozenset({"range", "roundrobin", "sticky"})),
    "confluent-kafka": Client(_python("confluent"), frozenset({"range", "roundrobin", "cooperative-sticky"})),
    "kafka-python": Client(_python("kafka_python"), frozenset({"range", "roundrobin", "sticky"})),
}
