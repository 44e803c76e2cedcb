"""Several listeners of one server: a client is answered with the addresses of its listener."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from integration.support.ports import Slot
from integration.support.server import Server
from kshim.testing import Cluster
from kshim.testing.wire import Wire
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.metadata import MetadataRequest

INSIDE, OUTSIDE = "INSIDE", "OUTSIDE"
BROKERS = 2


@pytest.fixture
def ports() -> Iterator[dict[str, range]]:
    """The ports of each listener, one a broker."""
    slots = {name: Slot() for name in (INSIDE, OUTSIDE)}
    yield {name: range(slot.port, slot.port + BROKERS) for name, slot in slots.items()}
    slots.clear()  # they are held until now


@pytest.fixture
def server(new_server: Callable[..., Server], ports: dict[str, range]) -> Server:
    listeners = ",".join(f"{name}://127.0.0.1:{found.start}" for name, found in ports.items())
    protocols = f"{INSIDE}:PLAINTEXT,{OUTSIDE}:PLAINTEXT"
    options = ("--brokers", str(BROKERS), "--set", f"listener.security.protocol.map={protocols}")
    return new_server(*options, "--listen", listeners).start()


def addresses(ports: range) -> str:
    return ",".join(f"127.0.0.1:{port}" for port in ports)


def told(port: int) -> set[int]:
    """The ports in the Metadata answer to a client that connects to `port`."""
    with Wire("127.0.0.1", port) as wire:
        metadata = wire.ask(9, MetadataRequest(topics=()))
        coordinator = wire.ask(2, FindCoordinatorRequest(key="readers"))
    return {broker.port for broker in metadata.brokers} | {coordinator.port}


def is_refused(port: int) -> bool:
    try:
        Wire("127.0.0.1", port).close()
    except ConnectionRefusedError:
        return True
    return False


def test_the_lines_that_are_printed(server: Server, ports: dict[str, range]) -> None:
    assert server.stdout == [
        f"kshim ready {addresses(ports[INSIDE])}",
        f"kshim listener {INSIDE} {addresses(ports[INSIDE])}",
        f"kshim listener {OUTSIDE} {addresses(ports[OUTSIDE])}",
    ]


@pytest.mark.parametrize("name", [INSIDE, OUTSIDE])
def test_a_client_gets_the_addresses_of_its_listener(
    server: Server, ports: dict[str, range], name: str
) -> None:
    for port in ports[name]:
        assert told(port) == told(port) == set(ports[name])  # the second reply was kept
    through = Cluster(addresses(ports[name]))
    topic = through.topic(partitions=4)
    through.produce(topic, [b"a", b"b", b"c", b"d"])
    assert len(through.consume(topic, 4)) == 4


def test_a_broker_stops_and_starts_at_all_its_listeners(server: Server, ports: dict[str, range]) -> None:
    at_second = [found[1] for found in ports.values()]
    server.steer("stop-broker", 2)
    assert all(map(is_refused, at_second))
    assert told(ports[OUTSIDE][0]) == {ports[OUTSIDE][0]}
    server.steer("start-broker", 2)
    assert not any(map(is_refused, at_second))
    described = json.loads(server.steer("describe", "--json"))["brokers"][1]["listeners"]
    assert described == {name: f"127.0.0.1:{found[1]}" for name, found in ports.items()}
    assert f"{OUTSIDE}://127.0.0.1:{at_second[1]}" in server.steer("describe")
