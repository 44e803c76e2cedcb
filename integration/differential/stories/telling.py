"""Tells stories to Apache Kafka and kshim: both must give the same answers.

A story is a function of a talk: it asks, and goes on according to the answers. A talk is one server, as one
kind of client meets it; `heard` is all that it heard, made comparable.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar

from integration import apache_kafka
from integration.support.server import Server, set_options


class Talk(Protocol):
    """A talk with one server."""

    @property
    def heard(self) -> Sequence[Any]:
        """All that is compared; lines of text, unless the talk says otherwise."""

    def close(self) -> None:
        """End the talk."""


T = TypeVar("T", bound=Talk)
Servers = tuple[Server, Server]
"""Apache Kafka and kshim."""


def stories_of(module: ModuleType) -> dict[str, Callable[..., None]]:
    """The stories of a module, which are its public functions, by name."""
    return {
        name: story
        for name, story in inspect.getmembers(module, inspect.isfunction)
        if story.__module__ == module.__name__ and not name.startswith("_")
    }


@contextlib.contextmanager
def both_servers(
    directory: Path, settings: Mapping[str, str], listeners: Sequence[str] = ()
) -> Iterator[Servers]:
    """Both servers with the same settings, until the block ends. listeners: the names of kshim's."""
    options = set_options(settings)
    both = (
        Server(directory / "apache-kafka", options, command=apache_kafka.COMMAND),
        Server(directory / "kshim", options, listeners=listeners),
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


def told(story: Callable[[T], None], talk: T) -> Sequence[Any]:
    """All that a talk has heard when the story is over."""
    with contextlib.closing(talk):
        story(talk)
    return talk.heard


def assert_same(story: Callable[[T], None], talks: Iterable[T]) -> int:
    """Tell the story to both servers at once, Apache Kafka first: both talks must hear the same.

    Returns how many answers were compared.
    """
    with ThreadPoolExecutor() as threads:
        theirs, ours = threads.map(partial(told, story), talks)
    assert ours == theirs, "\n".join(unified_diff(theirs, ours, "Apache Kafka", "kshim", lineterm=""))
    return len(ours)
