"""Apache Kafka and kshim answer Fetch, ListOffsets and OffsetForLeaderEpoch alike, story by story."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from integration import apache_kafka
from integration.differential import fetch_stories
from integration.differential.talk import Talk
from integration.server import Server

SETTINGS = {"auto.create.topics.enable": "false"}
STORIES = {
    name: story
    for name, story in inspect.getmembers(fetch_stories, inspect.isfunction)
    if story.__module__ == fetch_stories.__name__ and not name.startswith("_")
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, class_path: str) -> Iterator[tuple[Server, Server]]:
    """Apache Kafka and kshim."""
    directory = tmp_path_factory.mktemp("servers")
    options = list(
        itertools.chain.from_iterable(("--set", f"{key}={value}") for key, value in SETTINGS.items())
    )
    both = (
        Server(directory / "apache-kafka", options, command=apache_kafka.COMMAND),
        Server(directory / "kshim", options),
    )
    try:
        with ThreadPoolExecutor() as threads:
            list(threads.map(Server.start, both))
        yield both
    finally:
        for server in both:
            if server.running:
                server.stop()


@pytest.mark.parametrize("name", STORIES)
def test_both_tell_the_same_story(name: str, servers: tuple[Server, Server]) -> None:
    expected, got = (_told(STORIES[name], name, server) for server in servers)
    for number, (theirs, ours) in enumerate(zip(expected, got, strict=True)):
        assert ours == theirs, f"answer {number} of {len(expected)}"


def _told(story: Callable[[Talk], None], name: str, server: Server) -> list[str]:
    talk = Talk(server.host, server.port, name)
    try:
        story(talk)
    finally:
        talk.close()
    return talk.heard
