"""Two kshim, of which one no longer reaches a broker of the upstream: the other one serves the groups that
are kept there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import pytest

from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server
from integration.upstream.committer import Committer
from integration.upstream.ways import NodesWithWays
from kshim.coordination.shards import partition_for
from kshim.testing.wire import Wire
from kshim.upstream.shards.reach import SILENT_S
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic

SHARDS = 50
GROUPS = 6
NODE_IDS = (1, 2)
CUTTABLE = "CUTTABLE"
REPLICATED = {"default.replication.factor": 2, "offsets.topic.replication.factor": 2}
GOES_ON_S = SILENT_S + 5
"""Beside the silence, a rebalance of the processes, and a takeover, on a busy machine."""


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, class_path: str) -> Iterator[NodesWithWays]:
    directory = tmp_path_factory.mktemp("upstream")
    nodes = NodesWithWays(directory, len(NODE_IDS), [CUTTABLE], REPLICATED).start()
    yield nodes
    nodes.kill()


@pytest.fixture
def pair(kafka: NodesWithWays, tmp_path: Path) -> Iterator[list[Server]]:
    """The first one can be cut off."""
    servers = [
        Server(tmp_path / name, ["--upstream", upstream])
        for name, upstream in (("cuttable", kafka.bootstrap_by(CUTTABLE)), ("plain", kafka.bootstrap))
    ]
    for server in servers:
        server.start()
    wait_until(lambda: all(leads(server) == SHARDS // 2 for server in servers), 30, "each leads a half")
    yield servers
    for server in servers:
        server.kill()


def leads(server: Server) -> int:
    lines = [line for line in server.log if f" of {SHARDS} shards of __kshim_groups" in line]
    return int(lines[-1].split("will lead ")[1].split()[0]) if lines else 0


def node_of_processes(kafka: NodesWithWays) -> int:
    """The node that coordinates the group of the kshim processes."""
    server = kafka.servers[NODE_IDS[0]]
    with Wire(server.host, server.port) as wire:
        found: int = wire.ask(3, FindCoordinatorRequest(key="__kshim")).node_id
    return found


def shards_at(kafka: NodesWithWays, node_id: int) -> set[int]:
    """The shards whose partitions a node leads."""
    server = kafka.servers[node_id]
    with Wire(server.host, server.port) as wire:
        request = MetadataRequest(topics=(MetadataRequestTopic(name="__kshim_groups"),))
        (topic,) = wire.ask(9, request).topics
    return {each.partition_index for each in topic.partitions if each.leader_id == node_id}


def test_groups_go_on_at_the_kshim_that_reaches_their_broker(
    kafka: NodesWithWays, pair: list[Server], topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cut_off, other = pair
    admin = Admin(kafka.bootstrap)
    admin.create_topic(topic, 1)
    admin.close()
    (node_id,) = set(NODE_IDS) - {node_of_processes(kafka)}
    shards = shards_at(kafka, node_id)
    everybody = (Committer(pair, f"{topic}-{number}", topic) for number in count())
    committers = list(
        islice(
            (
                each
                for each in everybody
                if partition_for(each.group_id, SHARDS) in shards
                and wait_until(lambda each=each: each.commit(0), 20, "a commit")
                and each.leader() is cut_off
            ),
            GROUPS,
        )
    )
    said = len(other.log), len(cut_off.log)
    kafka.ways[CUTTABLE][node_id].hole()
    begun_s = time.monotonic()
    try:
        for committer in committers:
            wait_until(
                lambda committer=committer: committer.commit(1),
                3 * GOES_ON_S,
                lambda: f"a commit\n{cut_off.report()}\n{other.report()}",
            )
        gap_s = time.monotonic() - begun_s
        with capsys.disabled():
            print(f"\ncut off: no commit for {gap_s:.2f} s")
        assert gap_s < GOES_ON_S
        assert all(committer.read() == 1 for committer in committers)
        assert all(committer.leader() is other for committer in committers)
        news = [line for line in other.log[said[0] :] if "shards of __kshim_groups" in line]
        assert len([line for line in news if "will lead" in line]) == 1, news
        assert len([line for line in news if "took over" in line]) <= 1, news
        (line,) = [line for line in cut_off.log[said[1] :] if "have not answered" in line]
        assert "another kshim is to lead them" in line
    finally:
        kafka.ways[CUTTABLE][node_id].mend()
    wait_until(
        lambda: leads(cut_off) == leads(other) == SHARDS // 2,
        60,
        lambda: f"each leads a half again\n{cut_off.report()}\n{other.report()}",
    )
    for committer in committers:
        wait_until(lambda committer=committer: committer.commit(2), 20, "a commit")
        assert committer.faults == []
    lost = [line for line in cut_off.log[said[1] :] if "lost" in line and "shards of" in line]
    assert len(lost) <= 1, lost
