"""Apache Kafka with the options of `kshim serve`: formats a new data directory, then runs the broker.

This process becomes Kafka, so a signal to it is a signal to Kafka.
"""

from __future__ import annotations

import argparse
import base64
import os
import random
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from integration.apache_kafka import zookeeper
from integration.apache_kafka.jars import VERSION, fetch_class_path
from integration.support.toolchain import Missing
from kshim.testing.ports import RANGE as PORTS

SETTINGS = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # Kafka lets a killed broker register again only when its old session has ended
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "200",
}
JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"
FOR_TESTS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
FOR_BENCHMARKS = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
"""JVM options: no optimising compiler for a short run; for a measurement, those of Apache Kafka's start
script."""


def free_port(other_than: int = 0) -> int:
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            if port != other_than:
                return port
    raise SystemExit("no free port")


def settings_of_node(listeners: str, node_id: int, controllers: list[int]) -> dict[str, object]:
    """controllers: the ports of all nodes' controllers, by node id from 1 on."""
    controller = controllers[node_id - 1]
    voters = (f"{number}@127.0.0.1:{each}" for number, each in enumerate(controllers, 1))
    return {
        **SETTINGS,
        "node.id": node_id,
        "controller.quorum.voters": ",".join(voters),
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
    }


def write_properties(data_dir: Path, listeners: str, own: Mapping[str, object], options: list[str]) -> Path:
    """own: the settings of this node."""
    path = data_dir / "server.properties"
    settings = {
        **own,
        "advertised.listeners": listeners,
        "log.dirs": str(data_dir / "log"),
        **dict(option.split("=", 1) for option in options),
    }
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


def new_cluster_id() -> str:
    return base64.b64encode(uuid.uuid4().bytes, b"xy").decode().rstrip("=")


def allowed_urls(options: list[str]) -> list[str]:
    """Kafka reads keys of tokens only from URLs on its JVM's command line."""
    urls = [value for name, _, value in (each.partition("=") for each in options) if name.endswith(JWKS_URL)]
    return [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={','.join(urls)}"] if urls else []


def announce(port: int) -> None:
    """Start a child process that prints the ready line once the broker listens."""
    broker = os.getpid()
    if os.fork():
        return
    while os.getppid() == broker:  # a killed one listens only when its old session has ended
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                print(f"kshim ready 127.0.0.1:{port}", flush=True)
                break
        time.sleep(0.05)
    os._exit(0)


def run(port: int, command: list[str]) -> NoReturn:
    """Become the broker. port: announced once it listens."""
    announce(port)
    os.dup2(2, 1)
    os.execvp(command[0], command)


def main() -> None:
    parser = argparse.ArgumentParser(prog="integration.apache_kafka")
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--version", default=VERSION, help="which Apache Kafka (%(default)s)")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--node-id", type=int, default=1, help="one of several nodes (see `nodes`)")
    parser.add_argument("--controllers", default="", help="the ports of all nodes' controllers")
    parser.add_argument("--cluster-id", default=new_cluster_id(), help="the same for all nodes of a cluster")
    parser.add_argument("--benchmark", action="store_true", help="optimise for speed, not for a quick start")
    options = parser.parse_args()
    try:
        class_path = fetch_class_path(options.version)
    except Missing as error:
        raise SystemExit(f"Apache Kafka cannot run: {error}") from None
    jvm = FOR_BENCHMARKS if options.benchmark else FOR_TESTS
    java = ["java", *jvm, *allowed_urls(options.set), "-cp", class_path]
    port = int(options.listen.partition(",")[0].rpartition(":")[2]) or free_port()
    listeners = options.listen if "://" in options.listen else f"PLAINTEXT://127.0.0.1:{port}"
    options.data_dir.mkdir(exist_ok=True)
    first = not (options.data_dir / "log").exists()
    controllers = list(map(int, filter(None, options.controllers.split(",")))) or [free_port(other_than=port)]
    if zookeeper.is_needed(options.version):
        own = zookeeper.settings(controllers[0], SETTINGS) | {"broker.id": 1, "listeners": listeners}
        properties = write_properties(options.data_dir, listeners, own, options.set)
        run(port, [*java, *zookeeper.command(options.data_dir, controllers[0], properties)])
    own = settings_of_node(listeners, options.node_id, controllers)
    properties = write_properties(options.data_dir, listeners, own, options.set)
    if first:
        command = [*java, "kafka.tools.StorageTool", "format", "-t", options.cluster_id]
        subprocess.run([*command, "-c", str(properties)], check=True, stdout=sys.stderr)
    run(port, [*java, "kafka.Kafka", str(properties)])


if __name__ == "__main__":
    main()
