"""Plays scenarios against both servers of their pair, concurrently where they share it."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from integration import apache_kafka
from integration.differential.differences.guest import Guest
from integration.differential.differences.scenario import FRESH, SASL, SHARED, Scenario
from integration.differential.stories.sasl_settings import SETTINGS as WITH_SASL
from integration.differential.stories.telling import running
from integration.support.server import Server, set_options

Seen = Future[Any]
"""The result of a scenario, or the exception that it raised."""

SETTINGS = {
    SHARED: {
        "auto.create.topics.enable": "true",
        "broker.rack": "Köln",
        "group.consumer.assignment.interval.ms": "0",
        "group.max.size": "2",
        "group.min.session.timeout.ms": "300",
        "log.cleaner.backoff.ms": "100",
        "log.retention.check.interval.ms": "200",
        "max.incremental.fetch.session.cache.slots": "10",
    },
    FRESH: {"offsets.topic.replication.factor": "3"},
    SASL: {**WITH_SASL, "sasl.server.max.receive.size": "524288"},
}
OF_APACHE_KAFKA = {SHARED: {"log.initial.task.delay.ms": "500"}, FRESH: {}, SASL: {}}
"""Settings that kshim does not have."""


@contextlib.contextmanager
def started(pair: str, directory: Path) -> Iterator[tuple[Server, Server]]:
    """Apache Kafka and kshim with the same settings; kshim reads them from a server.properties in UTF-8."""
    directory.mkdir()
    properties = directory / "server.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in SETTINGS[pair].items()))
    options = set_options({**SETTINGS[pair], **OF_APACHE_KAFKA[pair]})
    both = (
        Server(directory / "apache-kafka", options, command=apache_kafka.COMMAND),
        Server(
            directory / "kshim",
            ["--config", str(properties)],
            listeners=["PLAINTEXT"] if pair == SASL else (),
        ),
    )
    with running(both):
        yield both


def play_shared(scenarios: Sequence[Scenario], server: Server) -> Mapping[Scenario, Seen]:
    """Play all at once."""

    def play(scenario: Scenario) -> Any:
        with contextlib.closing(_guest(scenario, server)) as guest:
            return scenario.tell(guest)

    with ThreadPoolExecutor(max(1, len(scenarios))) as threads:
        return {scenario: threads.submit(play, scenario) for scenario in scenarios}


def play_fresh(scenarios: Sequence[Scenario], server: Server) -> Mapping[Scenario, Seen]:
    """Play all one after the other up to the kill, and then the rest of those that go on after it."""
    seen: dict[Scenario, Seen] = {scenario: Future() for scenario in scenarios}
    halfway: dict[Scenario, tuple[Guest, Generator[None, None, Any]]] = {}
    for scenario in scenarios:
        guest = _guest(scenario, server)
        with _told(seen[scenario]) as future:
            if inspect.isgeneratorfunction(scenario.tell):
                rest = scenario.tell(guest)
                next(rest)
                halfway[scenario] = guest, rest
            else:
                future.set_result(scenario.tell(guest))
    server.kill()
    server.restart()
    for scenario, (guest, rest) in halfway.items():
        guest.go_to(server.host, server.port)
        with _told(seen[scenario]) as future:
            try:
                next(rest)
            except StopIteration as end:
                future.set_result(end.value)
    return seen


@contextlib.contextmanager
def _told(future: Seen) -> Iterator[Seen]:
    """Keep an exception as the scenario's result."""
    try:
        yield future
    except Exception as error:
        future.set_exception(error)


def _guest(scenario: Scenario, server: Server) -> Guest:
    return Guest(server.host, server.port, scenario.name.replace("_", "-"), scenario.patience_s)


PLAY = {SHARED: play_shared, FRESH: play_fresh, SASL: play_shared}
