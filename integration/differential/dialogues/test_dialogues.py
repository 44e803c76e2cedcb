"""Unmodified clients have the same dialogue with Apache Kafka and kshim as they join, crash and leave."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path
from typing import Protocol

import pytest

from integration.differential.dialogues.dialogue import Recorder
from integration.differential.dialogues.retold import Part, retold
from integration.differential.playing.pairs import Pair, create_topic
from integration.differential.playing.player import Target
from integration.support.awaiting import wait_until
from integration.support.clients import new_producer
from integration.support.process import Process
from integration.support.story import Member

PARTITIONS = 4
SESSION_TIMEOUT_MS = 6000
SHARED_TIMEOUT_S = 40


class Actor(Protocol):
    """A consumer in a process of its own."""

    owned: set[int]
    """Its partitions."""
    committed: dict[int, int]
    """For each partition the last offset that it committed."""

    def leave(self) -> None: ...
    def kill(self) -> None: ...
    def end(self) -> None: ...


Cast = Callable[[str, str, str, Path], Actor]
"""Starts an actor: its name, the server, the topic (which also names the group), a file for its log."""


def kafka_python(name: str, bootstrap: str, topic: str, log_path: Path) -> Actor:
    options = {
        "bootstrap": bootstrap,
        "group_id": topic,
        "topic": topic,
        "assignor": "range",
        "session_timeout_ms": SESSION_TIMEOUT_MS,
        "metadata_max_age_ms": 300_000,
    }
    return Member(name, options, log_path)


class VerifiableConsumer(Process):
    """Apache Kafka's own consumer from its system tests, which prints each event as a line of JSON."""

    def __init__(self, name: str, bootstrap: str, topic: str, log_path: Path, class_path: str) -> None:
        self.owned: set[int] = set()
        self.committed: dict[int, int] = {}
        config = log_path.with_suffix(".properties")
        config.write_text(f"client.id={name}\nheartbeat.interval.ms=300\n")
        java = ["java", "-Xmx96m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", class_path]
        tool = ["org.apache.kafka.tools.VerifiableConsumer", "--bootstrap-server", bootstrap]
        options = ["--topic", topic, "--group-id", topic, "--session-timeout", str(SESSION_TIMEOUT_MS)]
        super().__init__([*java, *tool, *options, "--command-config", str(config)], log_path)

    def _hear(self, line: str) -> None:
        fact = json.loads(line)
        numbers = {each["partition"] for each in fact.get("partitions", ()) if isinstance(each, dict)}
        if fact["name"] == "partitions_assigned":
            self.owned |= numbers
        elif fact["name"] == "partitions_revoked":
            self.owned -= numbers
        elif fact["name"] == "offsets_committed" and fact["success"]:
            self.committed |= {each["partition"]: each["offset"] for each in fact["offsets"]}

    def leave(self) -> None:
        self.stop(SHARED_TIMEOUT_S)

    def report(self) -> str:
        return "\n".join([f"-- owns {sorted(self.owned)}, log:", *self._log_lines(25)])


def perform(cast: Cast, target: Target, topic: str, directory: Path) -> dict[str, Part]:
    """Alice is alone, bob joins and crashes, carol joins and leaves; each partition is read and committed."""
    directory.mkdir()
    with ExitStack() as stack:
        recorder = stack.enter_context(Recorder(target))
        producer = new_producer(f"{target.host}:{target.port}")
        stack.callback(producer.close)

        def enter(name: str) -> Actor:
            actor = cast(name, recorder.bootstrap, topic, directory / name)
            stack.callback(actor.end)
            return actor

        def wait_shared(*actors: Actor) -> None:
            def shared() -> bool:
                owned = [partition for actor in actors for partition in actor.owned]
                return all(actor.owned for actor in actors) and sorted(owned) == list(range(PARTITIONS))

            wait_until(shared, SHARED_TIMEOUT_S, lambda: f"{[actor.owned for actor in actors]} is all")

        def read_all(offset: int, *actors: Actor) -> None:
            """Send the records one after the other, so that each is committed on its own."""
            for partition in range(PARTITIONS):
                producer.send(topic, b"record", partition=partition).get(10)
                wait_until(
                    lambda partition=partition: any(a.committed.get(partition) == offset for a in actors),
                    SHARED_TIMEOUT_S,
                    f"a commit of {partition}",
                )

        alice = enter("alice")
        wait_shared(alice)
        read_all(1, alice)
        bob = enter("bob")
        wait_shared(alice, bob)
        read_all(2, alice, bob)
        bob.kill()
        wait_shared(alice)
        carol = enter("carol")
        wait_shared(alice, carol)
        read_all(3, alice, carol)
        carol.leave()
        wait_shared(alice)
        alice.leave()
        return dict(retold(recorder, topic))


@pytest.fixture
def stages(pair_named: Callable[[str], Pair], topic: str) -> list[Target]:
    """Both servers, and a topic for this test alone. With the initial delay, members have their metadata in
    time."""
    return [
        replace(target, topic_ids={topic: create_topic(target, topic, PARTITIONS)})
        for target in pair_named("delayed").targets
    ]


@pytest.mark.parametrize("client", ["kafka-python", "java"])
def test_clients_meet_the_same_dialogue(
    client: str, stages: list[Target], topic: str, tmp_path: Path, class_path: str
) -> None:
    def java(name: str, bootstrap: str, topic: str, log_path: Path) -> Actor:
        return VerifiableConsumer(name, bootstrap, topic, log_path, class_path)

    cast = java if client == "java" else kafka_python
    directories = [tmp_path / "apache-kafka", tmp_path / "kshim"]
    with ThreadPoolExecutor() as threads:
        performances = [
            threads.submit(perform, cast, target, topic, directory)
            for target, directory in zip(stages, directories, strict=True)
        ]
        expected, got = (performance.result() for performance in performances)
    for name in expected.keys() | got.keys():
        lines = unified_diff(expected[name].acts, got[name].acts, "Apache Kafka", "kshim", lineterm="")
        assert got[name].acts == expected[name].acts, "\n".join([name, *lines])
        assert got[name].chatter == expected[name].chatter, name
