"""What people see of kshim in front of Apache Kafka: whether it is ready, the metrics, and at each of several
kshim the groups of all.
"""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from integration import apache_kafka
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server, run_to_end
from integration.upstream.committer import Committer
from integration.upstream.play import are_to_share

SHARDS = 50
SEEN_S = 20
OF_EACH = 3
ANSWER_S = 12
"""More than three seconds, and the start of a command on a busy machine."""


@pytest.fixture
def kafka(tmp_path: Path, class_path: str) -> Iterator[Server]:
    """One that the tests kill."""
    server = Server(tmp_path / "upstream", command=apache_kafka.COMMAND).start()
    yield server
    if server.running:
        server.kill()


@pytest.fixture
def kshim(kafka: Server, tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "kshim", ["--upstream", kafka.bootstrap, "--http", "127.0.0.1:0"]).start()
    wait_until(lambda: len(server.stdout) > 1, 10, "the address of the page")
    yield server
    server.kill()


def get(server: Server, target: str) -> tuple[int, bytes]:
    host, _, port = server.stdout[1].split()[2].rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    connection.request("GET", target)
    reply = connection.getresponse()
    found = reply.status, reply.read()
    connection.close()
    return found


def metrics(server: Server) -> dict[tuple[str, ...], float]:
    """The metrics of the upstream, by name and label."""
    _, body = get(server, "/metrics")
    return {
        (sample.name.removeprefix("kshim_upstream_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
        if sample.name.startswith("kshim_upstream_")
    }


def test_who_looks_sees_that_the_upstream_is_gone_and_back(kafka: Server, kshim: Server, topic: str) -> None:
    assert get(kshim, "/readyz") == (200, b'{"status": "ready"}\n')
    admin = Admin(kafka.bootstrap)
    admin.create_topic(topic, 1)
    admin.close()
    assert Committer([kshim], topic, topic).commit(1)
    seen = metrics(kshim)
    assert seen["answers",] == seen["broker_runs", "1"] == 1
    assert seen["shards_assigned",] == seen["shards_led",] == seen["shards_taken_over_total",] == SHARDS
    assert seen["shards_lost_total",] == seen["journal_queued_writes",] == 0
    assert seen["proof_age_seconds",] < SEEN_S
    wait_until(lambda: metrics(kshim)["offsets_uncopied",] == 0, SEEN_S, "the copy of the offset is made")

    kafka.kill()
    wait_until(lambda: get(kshim, "/readyz")[0] == 503, SEEN_S, kshim.report)
    assert json.loads(get(kshim, "/readyz")[1])["error"] == "the upstream does not answer"
    wait_until(lambda: metrics(kshim)["shards_led",] == 0, 2 * SEEN_S, kshim.report)
    seen = metrics(kshim)
    assert (seen["answers",], seen["broker_runs", "1"]) == (0, 0)
    wait_until(lambda: _lost(kshim), SEEN_S, kshim.report)
    assert seen["shards_lost_total",] == SHARDS

    kafka.restart()
    wait_until(lambda: get(kshim, "/readyz")[0] == 200, 2 * SEEN_S, kshim.report)
    wait_until(lambda: metrics(kshim)["shards_led",] == SHARDS, SEEN_S, kshim.report)
    assert len(_lost(kshim)) == 1, "one line, not one for each shard"
    assert metrics(kshim)["shards_taken_over_total",] == 2 * SHARDS


def _lost(server: Server) -> list[str]:
    return [line for line in server.log if "shards of __kshim_groups" in line and "lost" in line]


# ---- several kshim


@pytest.fixture
def pair(kafka: Server, tmp_path: Path) -> Iterator[list[Server]]:
    """Two kshim that share the groups, each with a page."""
    frozen_for_long = ("--set", "upstream.groups.session.timeout.ms=30000")
    options = ["--upstream", kafka.bootstrap, "--http", "127.0.0.1:0", *frozen_for_long]
    servers = [Server(tmp_path / f"kshim{number}", options).start() for number in (1, 2)]
    wait_until(lambda: are_to_share(servers, 2), SEEN_S, "each leads a half")
    yield servers
    for server in servers:
        if server.running:
            server.process.send_signal(signal.SIGCONT)
            server.kill()


@pytest.fixture
def groups(pair: list[Server], topic: str) -> dict[str, Server]:
    """Three groups of each kshim, with an offset each, and the kshim that coordinates them."""
    admin = Admin(pair[0].bootstrap)
    admin.create_topic(topic, 1)
    admin.close()
    found: dict[str, Server] = {}
    for number in range(40):
        committer = Committer(pair, f"{topic}-{number}", topic)
        leader = committer.leader()
        if leader is not None and list(found.values()).count(leader) < OF_EACH:
            wait_until(lambda committer=committer: committer.commit(1), SEEN_S, "a commit")
            found[committer.group_id] = leader
    assert len(found) == 2 * OF_EACH
    return found


def listed(server: Server) -> subprocess.CompletedProcess[str]:
    return run_to_end("groups", "--json", "--data-dir", str(server.data_dir), cwd=server.data_dir.parent)


def page_of(server: Server, group_id: str) -> tuple[int, str]:
    status, body = get(server, f"/page/groups/{group_id}")
    return status, body.decode()


def test_each_kshim_shows_the_groups_of_all(pair: list[Server], groups: dict[str, Server]) -> None:
    wait_until(
        lambda: all(_knows_all(each, groups) for each in pair), SEEN_S, "each knows where the others are"
    )
    for server in pair:
        rows = json.loads(listed(server).stdout)
        assert [each["group_id"] for each in rows["groups"]] == sorted(groups)
        assert rows["silent"] == []
        over_http = json.loads(get(server, "/groups")[1])
        assert [each["group_id"] for each in over_http["groups"]] == sorted(groups)
        assert all(f'data-group="{each}"' in get(server, "/")[1].decode() for each in groups)
        for group_id, leader in groups.items():
            assert json.loads(get(server, f"/groups/{group_id}")[1])["offsets"][0]["committed"] == 1
            assert page_of(server, group_id)[0] == 200
            why = server.why(group_id)
            assert why["now"]["state"] == "Empty"
            assert why.get("coordinated_by") == (None if leader is server else leader.bootstrap)
            here = get(server, f"/groups/{group_id}?here=true")[0]
            assert here == (200 if leader is server else 404)
    top = run_to_end("top", "--data-dir", str(pair[0].data_dir), cwd=pair[0].data_dir.parent)
    assert all(each in top.stdout for each in groups)
    assert top.stderr == ""


def _knows_all(server: Server, groups: dict[str, Server]) -> bool:
    known = json.loads(listed(server).stdout)
    return not known["silent"] and len(known["groups"]) == len(groups)


def test_a_kshim_that_does_not_answer_is_named(pair: list[Server], groups: dict[str, Server]) -> None:
    """It is frozen, and its shards are not led by the other one yet."""
    wait_until(
        lambda: all(_knows_all(each, groups) for each in pair), SEEN_S, "each knows where the others are"
    )
    asked, frozen = pair
    theirs = next(each for each, leader in groups.items() if leader is frozen)
    frozen.process.send_signal(signal.SIGSTOP)
    begun_s = time.monotonic()
    found = listed(asked)
    assert time.monotonic() - begun_s < ANSWER_S
    (silent,) = json.loads(found.stdout)["silent"]
    assert silent == {"kshim": frozen.bootstrap, "why": silent["why"]}
    assert silent["why"].startswith("does not answer: ")
    plain = run_to_end("groups", "--data-dir", str(asked.data_dir), cwd=asked.data_dir.parent)
    assert f"the kshim at {frozen.bootstrap} does not answer" in plain.stderr
    assert "its groups are missing here" in plain.stderr
    line = f"is coordinated by the kshim at {frozen.bootstrap}, which does not answer"
    why = run_to_end("why", theirs, "--data-dir", str(asked.data_dir), cwd=asked.data_dir.parent)
    assert why.returncode == 2
    assert f"group {theirs} {line}" in why.stderr
    assert f"The kshim at {frozen.bootstrap} does not answer" in get(asked, "/")[1].decode()
    status, page = page_of(asked, theirs)
    assert status == 503
    assert line in page


def test_a_kshim_without_http_is_named(kafka: Server, tmp_path: Path) -> None:
    with_page = Server(tmp_path / "with", ["--upstream", kafka.bootstrap, "--http", "127.0.0.1:0"]).start()
    without = Server(tmp_path / "without", ["--upstream", kafka.bootstrap]).start()
    servers = [with_page, without]
    try:
        wait_until(lambda: are_to_share(servers, 2), SEEN_S, "each leads a half")
        wait_until(lambda: json.loads(listed(without).stdout)["silent"] == [], SEEN_S, "it finds the page")
        (silent,) = json.loads(listed(with_page).stdout)["silent"]
        assert silent["kshim"] == without.bootstrap
        assert "--http" in silent["why"]
    finally:
        for server in servers:
            server.kill()
