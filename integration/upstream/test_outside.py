"""Faults, recorder, page and metrics of kshim in front of Apache Kafka, through their commands."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.support.awaiting import wait_until
from integration.support.clients import new_producer
from integration.support.server import Server, run_to_end
from integration.support.story import Story, telling

PARTITIONS = 4
DELAY_MS = 700
WITHIN_S = 60


@pytest.fixture(scope="module")
def kshim(kafka: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data_dir = tmp_path_factory.mktemp("kshim") / "data"
    server = Server(data_dir, ["--upstream", kafka.bootstrap, "--http", "127.0.0.1:0"]).start()
    yield server
    server.kill()


class Outside:
    """Questions of people beside the clients."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._http = next(line.split()[-1] for line in server.log if "the page is at" in line)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        data_dir = self.server.data_dir
        return run_to_end(*arguments, "--data-dir", str(data_dir), cwd=data_dir, timeout_s=WITHIN_S)

    def tell(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def told(self, *arguments: str) -> Any:
        return json.loads(self.tell(*arguments, "--json"))

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self._http.rstrip("/") + path, timeout=WITHIN_S) as answer:
            return str(answer.read().decode())

    def metrics(self, topic: str) -> dict[str, float]:
        """The metrics of a topic and the metrics without a topic, with their labels."""
        lines = [line for line in self.get("/metrics").splitlines() if not line.startswith("#")]
        found = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
        return {name: value for name, value in found.items() if "topic=" not in name or f'"{topic}"' in name}


@pytest.fixture
def outside(kshim: Server) -> Outside:
    return Outside(kshim)


@pytest.fixture
def story(kshim: Server, topic: str, tmp_path: Path) -> Iterator[Story]:
    with telling(kshim.bootstrap, topic, PARTITIONS, "range", tmp_path, session_timeout_ms=20_000) as story:
        members = [story.join(name) for name in ("first", "second")]
        story.wait_shared(*members, timeout_s=WITHIN_S)
        yield story


def test_the_recorder_names_the_client_that_made_the_group_rebalance(outside: Outside, story: Story) -> None:
    group = story.group_id
    command = [*outside.server.command, "watch", "--json", "--since-start", "--group", group]
    with subprocess.Popen(
        [*command, "--data-dir", str(outside.server.data_dir)], stdout=subprocess.PIPE, text=True
    ) as watch:
        assert watch.stdout is not None
        first = json.loads(watch.stdout.readline())
        assert group in first["text"], first
        outside.tell(
            "fault", "add", "--api", "Heartbeat", "--error", "UNKNOWN_MEMBER_ID", "--group", group, "--once"
        )
        for line in watch.stdout:
            if "strikes Heartbeat" in json.loads(line)["text"]:
                break
        before = max(story.generations())
        wait_until(lambda: max(story.generations()) > before, WITHIN_S, story.report)
        watch.kill()
    story.wait_shared(*story.members, timeout_s=WITHIN_S)
    causes = [each["cause_key"] for each in outside.told("why", group)["rebalances"]]
    assert set(causes) == {"MEMBER_JOINED"}, causes
    assert len(causes) == max(story.generations())
    (known,) = (each for each in outside.told("groups")["groups"] if each["group_id"] == group)
    assert (known["state"], known["members"]) == ("Stable", 2)
    story.wait_consumed(WITHIN_S)


def test_faults_strike_what_is_forwarded_what_is_rewritten_and_what_is_ours(
    outside: Outside, story: Story
) -> None:
    topic, group = story.topic, story.group_id
    of_topic, of_group = ("--topic", topic), ("--group", group)
    for fault in (
        ("--api", "Produce", "--error", "NOT_LEADER_OR_FOLLOWER", *of_topic, "--once"),
        ("--api", "Fetch", "--stall-ms", "300", *of_topic, "--once"),
        ("--api", "Fetch", "--bytes-per-s", "10000", *of_topic, "--times", "2"),
        ("--api", "Fetch", "--close", "after", *of_topic, "--once"),
        ("--api", "OffsetCommit", "--error", "COORDINATOR_LOAD_IN_PROGRESS", *of_group, "--once"),
        ("--api", "Heartbeat", "--close", "before", *of_group, "--once"),
    ):
        outside.tell("fault", "add", *fault)

    def all_have_struck() -> bool:
        return all(
            each["struck"] == each["matched"] and not each["is_in_force"]
            for each in outside.told("fault", "list")
        )

    wait_until(all_have_struck, WITHIN_S, lambda: outside.tell("fault", "list"))
    outside.tell("fault", "add", "--api", "Produce", "--delay-ms", str(DELAY_MS), "--client-id", "late")
    producer = new_producer(outside.server.bootstrap, client_id="late")
    producer.partitions_for(topic)
    begun_s = time.monotonic()
    producer.send(topic, b"late", partition=0).get(timeout=WITHIN_S)
    assert time.monotonic() - begun_s >= DELAY_MS / 1000
    producer.close()
    assert outside.tell("fault", "remove", "--all").startswith("removed: ")
    story.wait_shared(*story.members, timeout_s=WITHIN_S)
    story.wait_consumed(WITHIN_S)


def test_an_error_that_only_the_upstream_could_place_is_refused(outside: Outside) -> None:
    done = outside.run("fault", "add", "--api", "Fetch", "--error", "NOT_LEADER_OR_FOLLOWER")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("kshim: NOT_LEADER_OR_FOLLOWER stands at partitions or topics"), done.stderr


def test_the_page_and_the_metrics_show_the_upstream(outside: Outside, story: Story) -> None:
    topic, group = story.topic, story.group_id
    story.feed.stop()
    story.wait_consumed(WITHIN_S)
    sent = len(story.feed.acknowledged)
    found = outside.metrics(topic)
    for partition in range(PARTITIONS):
        at = f'{{partition="{partition}",topic="{topic}"}}'
        of_group = f'{{consumergroup="{group}",partition="{partition}",topic="{topic}"}}'
        assert found[f"kafka_topic_partition_leader{at}"] == 1
        assert found[f"kafka_topic_partition_leader_is_preferred{at}"] == 1
        assert found[f"kafka_topic_partition_replicas{at}"] == 1
        assert found[f"kafka_topic_partition_in_sync_replica{at}"] == 1
        assert found[f"kafka_topic_partition_under_replicated_partition{at}"] == 0
        end = found[f"kafka_topic_partition_current_offset{at}"]
        assert found[f"kafka_consumergroup_current_offset{of_group}"] == end
        assert found[f"kafka_consumergroup_lag{of_group}"] == 0
    ends = (value for name, value in found.items() if name.startswith("kafka_topic_partition_current_offset"))
    assert sum(ends) == sent
    assert found["kafka_brokers"] == 1
    assert found[f'kafka_consumergroup_members{{consumergroup="{group}"}}'] == 2
    for request in ("Produce", "Fetch", "Metadata", "OffsetCommit"):
        assert found[f'kshim_kafka_request_latency_seconds_count{{request="{request}"}}'] > 0
    assert json.loads(outside.get("/readyz")) == {"status": "ready"}
    assert group in outside.get("/")
    assert "first" in outside.get(f"/page/groups/{group}")
    assert topic in outside.get("/page/topics")
    (known,) = (each for each in json.loads(outside.get("/topics"))["topics"] if each["topic"] == topic)
    assert sum(each["high_watermark"] for each in known["partitions"]) == sent
    with subprocess.Popen(
        [*outside.server.command, "top", "--every", "0.2", "--data-dir", str(outside.server.data_dir)],
        stdout=subprocess.PIPE,
        text=True,
    ) as top:
        assert top.stdout is not None
        assert any(line.split()[:4] == [group, "Stable", "2", "0"] for line in top.stdout)
        top.kill()
