"""A build of kshim that is some days old, and this one, side by side in front of one upstream.

The older build is a commit of this repository. Two kshim are replaced one after the other, from the older
build to this one and back, while groups of both protocols consume and commit.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.support.server import COMMAND, Server
from integration.support.story import ROOT
from integration.upstream.load import Bare, Consumers, Loaded, wait_committed

CLASSIC, BOTH = ("librdkafka",), ("librdkafka", "librdkafka-consumer")
OLDER = {
    "b3f50493866e9ae57a6f831e4a9303611bddc210": CLASSIC,
    "2e32d0d885d5179d3576803a4300f13761a1ef5c": BOTH,
}
"""The groups' members, by the commit of the older build. The commits are of 24 and 27 November 2026; the
first one does not serve the consumer protocol in front of an upstream.
"""
BARE = 4


@pytest.fixture(params=OLDER, ids=("classic", "both"))
def commit(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def older(commit: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of the older build."""
    path = tmp_path_factory.mktemp("older")
    archive = subprocess.run(
        ["git", "archive", commit, "kshim", "schemas"], cwd=ROOT, capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip(f"needs a clone with commit {commit}: {archive.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", str(path)], input=archive.stdout, check=True)
    return ["env", f"PYTHONPATH={path}", sys.executable, "-m", "kshim"]


@pytest.fixture
def pair(kafka: Server, older: list[str], tmp_path: Path) -> Iterator[list[Server]]:
    """Two kshim of the older build."""
    options = ["--upstream", kafka.bootstrap]
    servers = [Server(tmp_path / f"kshim{number}", options, command=older) for number in (1, 2)]
    for each in servers:
        each.start()
    yield servers
    for each in servers:
        if each.running:
            each.kill()


def test_groups_go_on_from_the_older_build_to_this_one_and_back(
    commit: str, older: list[str], pair: list[Server], topic: str, tmp_path: Path
) -> None:
    """No commit is lost, no offset goes back, nobody rebalances."""
    consumers = [Consumers(pair, kind, f"{kind}-{topic}", tmp_path, 1) for kind in OLDER[commit]]
    bare = [Bare(pair, f"group-{number}-of-{topic}", consumers[0].story.topic) for number in range(BARE)]
    groups: list[Loaded] = [*consumers, *bare]

    try:
        wait_committed(groups, pair)
        rebalances = [each.rebalances() for each in consumers]
        for build in (COMMAND, older):
            for server in pair:
                server.stop()
                server.command = build
                server.restart()
                wait_committed(groups, pair)
        assert [each.rebalances() for each in consumers] == rebalances
        assert [fault for group in groups for fault in group.finish()] == []
    finally:
        for group in groups:
            group.end()
    for server in pair:
        assert "Traceback" not in "\n".join(server.log), server.report()
