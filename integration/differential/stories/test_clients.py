"""Unmodified clients hear the same from Apache Kafka and kshim as they join, crash and leave."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from integration.differential.playing.pairs import Pair, create_topic
from integration.differential.stories.overheard import Overheard
from integration.differential.stories.telling import assert_same
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


def perform(talk: Overheard, cast: Cast, directory: Path) -> None:
    """Alice is alone, bob joins and crashes, carol joins and leaves; each partition is read and committed."""
    with ExitStack() as stack:
        producer = new_producer(f"{talk.target.host}:{talk.target.port}")
        stack.callback(producer.close)

        def enter(name: str) -> Actor:
            actor = cast(name, talk.bootstrap, talk.group, directory / f"{name}-{talk.port}")
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
                producer.send(talk.group, b"record", partition=partition).get(10)
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


@pytest.fixture
def talks(pair_named: Callable[[str], Pair], topic: str) -> list[Overheard]:
    """One with each server, about a topic for this test alone, which also names the group. With the initial
    delay, members have their metadata in time.
    """
    return [
        Overheard(replace(target, topic_ids={topic: create_topic(target, topic, PARTITIONS)}), topic)
        for target in pair_named("delayed").targets
    ]


@pytest.mark.parametrize("client", ["kafka-python", "java"])
def test_clients_meet_the_same(client: str, talks: list[Overheard], tmp_path: Path, class_path: str) -> None:
    def java(name: str, bootstrap: str, topic: str, log_path: Path) -> Actor:
        return VerifiableConsumer(name, bootstrap, topic, log_path, class_path)

    cast = java if client == "java" else kafka_python
    assert_same(partial(perform, cast=cast, directory=tmp_path), talks)
