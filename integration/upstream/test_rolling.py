"""The nodes of Apache Kafka are restarted one after the other, while clients of two kshim go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.apache_kafka.nodes import Nodes, are_in_sync
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server, set_options
from integration.upstream.load import Bare, Consumers, Loaded, wait_committed

REPLICAS = 3
WITHIN_S = 120
BARE = 4
SETTINGS = {
    "offsets.topic.replication.factor": REPLICAS,
    "default.replication.factor": REPLICAS,
    "min.insync.replicas": REPLICAS - 1,
}


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, class_path: str) -> Iterator[Nodes]:
    options = set_options(SETTINGS)
    nodes = Nodes(tmp_path_factory.mktemp("upstream"), REPLICAS, *options).start()
    yield nodes
    nodes.kill()


@pytest.fixture
def pair(nodes: Nodes, tmp_path: Path) -> Iterator[list[Server]]:
    servers = [Server(tmp_path / f"kshim{number}", ["--upstream", nodes.bootstrap]) for number in (1, 2)]
    for server in servers:
        server.start()
    yield servers
    for server in servers:
        server.kill()


@pytest.mark.parametrize("ends", ["stop", "kill"])
def test_nothing_is_lost_and_nobody_rebalances(
    nodes: Nodes, pair: list[Server], topic: str, tmp_path: Path, ends: str
) -> None:
    """Records and commits that were acknowledged are there, offsets do not go back, generations stay."""
    admin = Admin(nodes.bootstrap)
    admin.create_topic(topic, 1, replication_factor=REPLICAS)
    admin.close()
    consumers = Consumers(pair, "kafka-python", f"read-of-{topic}", tmp_path, REPLICAS)
    groups: list[Loaded] = [
        consumers,
        *(Bare(pair, f"group-{number}-of-{topic}", topic) for number in range(BARE)),
    ]

    try:
        wait_committed(groups, pair)
        rebalances = consumers.rebalances()
        for node in nodes.servers.values():
            node.stop() if ends == "stop" else node.kill()
            wait_committed(groups, pair)
            node.restart()
            wait_until(
                lambda node=node: are_in_sync(node, REPLICAS), WITHIN_S, lambda node=node: node.report()
            )
            wait_committed(groups, pair)
        assert consumers.rebalances() == rebalances
        assert [fault for group in groups for fault in group.finish()] == []
    finally:
        for group in groups:
            group.end()
