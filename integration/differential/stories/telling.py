"""Runs stories, functions that ask a server and look at its answers, against Apache Kafka and kshim.

A story is any public function of its module that takes a talk. Both servers must give the same answers.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from integration import apache_kafka
from integration.differential.stories.talk import Talk
from integration.support.server import Server

T = TypeVar("T", bound=Talk)
Servers = tuple[Server, Server]
"""Apache Kafka and kshim."""


def stories_of(module: ModuleType) -> dict[str, Callable[..., None]]:
    """The stories of a module, by name."""
    return {
        name: story
        for name, story in inspect.getmembers(module, inspect.isfunction)
        if story.__module__ == module.__name__ and not name.startswith("_")
    }


@contextlib.contextmanager
def both_servers(directory: Path, settings: Mapping[str, str]) -> Iterator[Servers]:
    """Both servers with the same settings, until the block ends."""
    options = list(
        itertools.chain.from_iterable(("--set", f"{key}={value}") for key, value in settings.items())
    )
    both = (
        Server(directory / "apache-kafka", options, command=apache_kafka.COMMAND),
        Server(directory / "kshim", options),
    )
    with running(both):
        yield both


@contextlib.contextmanager
def running(both: Servers) -> Iterator[None]:
    """Start both servers at the same time; they run until the block ends. Only kshim has to stop cleanly."""
    try:
        with ThreadPoolExecutor() as threads:
            list(threads.map(Server.start, both))
        yield
    finally:
        theirs, ours = both
        if theirs.running:
            theirs.kill()
        if ours.running:
            ours.stop()


def assert_same(
    story: Callable[[T], None], name: str, new_talk: Callable[[str, int, str], T], servers: Servers
) -> None:
    """Run the story against both servers at once: all their answers must be the same."""

    def told(server: Server) -> list[str]:
        talk = new_talk(server.host, server.port, name)
        try:
            story(talk)
        finally:
            talk.close()
        return talk.heard

    with ThreadPoolExecutor() as threads:
        expected, got = threads.map(told, servers)
    for number, (theirs, ours) in enumerate(zip(expected, got, strict=True)):
        assert ours == theirs, f"answer {number} of {len(expected)}"
