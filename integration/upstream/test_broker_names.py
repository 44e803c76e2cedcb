"""One port of kshim for all brokers of three nodes: clients say in the TLS handshake which one they mean."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration.apache_kafka.nodes import Nodes
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.host_names import resolving
from integration.support.ports import Slot
from integration.support.server import Server, run_to_end, set_options
from integration.support.story import ROOT
from integration.support.toolchain import or_skip
from kshim.testing.wire import Wire, api_key_of, framed
from kshim.upstream.fellows import FIRST_NODE_ID
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.metadata import MetadataRequest
from schemas.registry import decode_response

BOOTSTRAP, PATTERN = "kafka.localhost", "b$(nodeId).kafka.localhost"
NODES, PARTITIONS, WITHIN_S, METADATA = (1, 2, 3), 6, 90, 12


@dataclass
class World:
    """kshim with a plain port for each broker, and one port with TLS for all."""

    nodes: Nodes
    kshim: Server
    certificates: Path
    port: int
    """The one with TLS."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, class_path: str) -> Iterator[World]:
    path = tmp_path_factory.mktemp("names")
    certificates = path / "certificates"
    hosts = ("--host", BOOTSTRAP, "--host", f"*.{BOOTSTRAP}")
    assert run_to_end("certificates", str(certificates), *hosts, cwd=path).returncode == 0
    nodes = Nodes(path, len(NODES)).start()
    slot = Slot()  # a plain port for each, and one with TLS
    tls = slot.port + len(NODES)
    properties = {
        "advertised.listeners": f"SSL://{BOOTSTRAP}:{tls}",
        "upstream.advertised.host.pattern": PATTERN,
        "ssl.keystore.location": certificates / "server.pem",
    }
    listen = f"PLAINTEXT://127.0.0.1:{slot.port},SSL://127.0.0.1:{tls}"
    options = ["--listen", listen, "--upstream", nodes.bootstrap, "--http", "127.0.0.1:0"]
    kshim = Server(path / "data", [*options, *set_options(properties)])
    kshim.start_at(slot)
    yield World(nodes, kshim, certificates, tls)
    kshim.kill()
    nodes.kill()


@pytest.fixture
def made(world: World, topic: str) -> str:
    """A topic with leaders at all nodes."""
    admin = Admin(world.nodes.bootstrap)
    admin.create_topic(topic, PARTITIONS)
    admin.close()
    return topic


def connected(world: World) -> set[int]:
    """The brokers at which clients are connected with TLS."""
    (http,) = (line.split()[2] for line in world.kshim.stdout if line.startswith("kshim http "))
    url = f"http://{http}/connections"
    with urllib.request.urlopen(url, timeout=10) as answer:
        rows = json.load(answer)["connections"]
    return {row["broker"] for row in rows if row["listener"] == "SSL"}


@pytest.mark.parametrize("client", ["kafka-python", "librdkafka"])
def test_clients_reach_each_broker_by_its_name(world: World, made: str, client: str, tmp_path: Path) -> None:
    names = [BOOTSTRAP, *(PATTERN.replace("$(nodeId)", str(node_id)) for node_id in NODES)]
    with or_skip(client):
        before = resolving(names, tmp_path)
    command = [sys.executable, "-m", "integration.upstream.reader", client, f"{BOOTSTRAP}:{world.port}"]
    command += [made, str(PARTITIONS), str(world.certificates / "ca.pem")]
    with subprocess.Popen(
        [*before, *command], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        found = json.loads(program.stdout.readline())
        assert found["read"] == list(range(PARTITIONS))
        assert found["brokers"] == {str(node_id): f"b{node_id}.{BOOTSTRAP}:{world.port}" for node_id in NODES}
        assert connected(world) == set(NODES)
        program.stdin.close()
        assert program.wait(WITHIN_S) == 0


def asked(world: World, port: int, server_name: str | None, version: int, request: object) -> Any:
    """The response to a client that names this server. Raises ConnectionError, ssl.SSLError."""
    context = ssl.create_default_context(cafile=str(world.certificates / "ca.pem"))
    context.check_hostname = False
    plain = socket.create_connection(("127.0.0.1", port), 10)
    with context.wrap_socket(plain, server_hostname=server_name) as tls:
        tls.sendall(framed(version, request))
        frame, wanted = b"", 4
        while len(frame) < wanted:
            received = tls.recv(65536)
            if not received:
                raise ConnectionError("closed")
            frame += received
            wanted = 4 + int.from_bytes(frame[:4])
    return decode_response(api_key_of(request), version, frame[4:])[1]


def ask(world: World, server_name: str | None) -> dict[int, str]:
    """The addresses for a client that names this server. Raises ConnectionError, ssl.SSLError."""
    response = asked(world, world.port, server_name, METADATA, MetadataRequest(topics=()))
    return {each.node_id: f"{each.host}:{each.port}" for each in response.brokers}


@pytest.mark.parametrize("server_name", [BOOTSTRAP, "elsewhere.example.com", "b77.kafka.localhost", None])
def test_a_client_that_names_no_broker_is_served(world: World, server_name: str | None) -> None:
    told = ask(world, server_name)
    assert told == {node_id: f"b{node_id}.{BOOTSTRAP}:{world.port}" for node_id in NODES}


def test_a_plain_listener_has_a_port_for_each_broker(world: World) -> None:
    for number in range(len(NODES)):
        with Wire(world.kshim.host, world.kshim.port + number) as wire:
            told = wire.ask(METADATA, MetadataRequest(topics=()))
        ports = {each.port for each in told.brokers}
        assert ports == {world.kshim.port + each for each in range(len(NODES))}


def test_the_port_stays_open_while_a_broker_is_gone(world: World) -> None:
    """The broker by which the port was opened. A client that names it is closed, others are served."""
    gone, *others = NODES
    assert ask(world, f"b{gone}.{BOOTSTRAP}")
    world.nodes.servers[gone].kill()
    try:
        wait_until(
            lambda: (
                not is_closed(world, others[0]) and set(ask(world, f"b{others[0]}.{BOOTSTRAP}")) == {*others}
            ),
            WITHIN_S,
            world.kshim.report,
        )
        wait_until(lambda: "its port refuses" in "\n".join(world.kshim.log), WITHIN_S, world.kshim.report)
        assert is_closed(world, gone)
        assert set(ask(world, BOOTSTRAP)) == {*others}
    finally:
        world.nodes.servers[gone].restart()
    wait_until(lambda: not is_closed(world, gone), WITHIN_S, world.kshim.report)


def is_closed(world: World, node_id: int) -> bool:
    try:
        return not ask(world, f"b{node_id}.{BOOTSTRAP}")
    except (ConnectionError, ssl.SSLError):
        return True


def test_several_kshim_have_names_of_their_own(world: World, tmp_path: Path) -> None:
    """A group is found by the bootstrap name of its kshim, the ports of all by the names of the brokers."""
    servers = {}
    for name in ("k1", "k2"):
        host = f"{name}.{BOOTSTRAP}"
        slot = Slot()
        properties = {
            "advertised.listeners": f"SSL://{host}:{slot.port}",
            "upstream.advertised.host.pattern": f"b$(nodeId).{host}",
            "upstream.groups.topic": "of-several",
            "upstream.groups.group.id": "of-several",
            "ssl.keystore.location": world.certificates / "server.pem",
        }
        options = ["--listen", f"SSL://127.0.0.1:{slot.port}", "--upstream", world.nodes.bootstrap]
        servers[host] = Server(tmp_path / name, [*options, *set_options(properties)])
        servers[host].start_at(slot)
    try:
        for each in servers.values():
            wait_until(lambda each=each: "2 kshim share them" in "\n".join(each.log), WITHIN_S, each.report)
        hosts = {host: server.port for host, server in servers.items()}
        groups = [f"group-{number}" for number in range(20)]

        def found() -> dict[str, tuple[str, int]]:
            request = FindCoordinatorRequest(coordinator_keys=tuple(groups))
            response = asked(world, next(iter(hosts.values())), None, 4, request)
            return {each.key: (each.host, each.port) for each in response.coordinators}

        wait_until(lambda: set(found().values()) == set(hosts.items()), WITHIN_S, lambda: f"{found()}")
        for group_id, (host, port) in found().items():
            described = asked(world, port, host, 5, DescribeGroupsRequest(groups=(group_id,)))
            assert described.groups[0].error_code == 0, (group_id, host)
        for host, port in hosts.items():
            brokers = asked(world, port, f"b2.{host}", METADATA, MetadataRequest(topics=())).brokers
            ours = {(each.host, each.port) for each in brokers if each.node_id < FIRST_NODE_ID}
            assert ours == {(f"b{node_id}.{host}", port) for node_id in NODES}
            others = {(each.host, each.port) for each in brokers if each.node_id >= FIRST_NODE_ID}
            of_ports = {(f"b{node_id}.{name}", at) for name, at in hosts.items() for node_id in NODES}
            assert others == {*hosts.items(), *of_ports}
    finally:
        for each in servers.values():
            each.kill()


def test_a_pattern_needs_a_listener_with_tls(tmp_path: Path) -> None:
    options = set_options({"upstream.advertised.host.pattern": PATTERN})
    done = run_to_end("serve", "--upstream", "127.0.0.1:1", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert "expected a listener with TLS" in done.stderr
    assert len(done.stderr.splitlines()) == 1
