"""Apache Kafka before 3.3: its metadata is in ZooKeeper, which runs in the broker's process.

In 2.8 the broker also starts without ZooKeeper, as a preview, but without transactions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

FIRST_WITHOUT: Final = (3, 3)
SOURCE: Final = Path(__file__).with_name("WithZooKeeper.java")
WITHOUT: Final = ("process.roles", "controller.listener.names", "listener.security.protocol.map")
"""The settings of a node without ZooKeeper."""
SESSION_MS, CONNECT_MS = 10_000, 60_000
"""Long enough for a busy machine: a broker ends when one of them is over."""


def is_needed(version: str) -> bool:
    """True if a release of Apache Kafka needs ZooKeeper."""
    return tuple(map(int, version.split(".")[:2])) < FIRST_WITHOUT


def settings(port: int, common: Mapping[str, str]) -> dict[str, object]:
    """Return the settings of a broker whose ZooKeeper is at this port. common: those of every node."""
    return {name: text for name, text in common.items() if name not in WITHOUT} | {
        "zookeeper.connect": f"127.0.0.1:{port}",
        "zookeeper.session.timeout.ms": SESSION_MS,
        "zookeeper.connection.timeout.ms": CONNECT_MS,
    }


def command(data_dir: Path, port: int, properties: Path) -> list[str]:
    """Return the arguments of `java` that start both."""
    path = data_dir / "zookeeper.properties"
    path.write_text(
        f"dataDir={data_dir / 'zookeeper'}\n"
        f"clientPort={port}\n"
        "clientPortAddress=127.0.0.1\n"
        "admin.enableServer=false\n"
        "maxClientCnxns=0\n"
        "tickTime=1000\n"
    )
    return [str(SOURCE), str(path), str(properties)]
