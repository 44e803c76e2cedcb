"""Both brokers: one server of each, shared by all tests, which keep to topics and groups of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from integration import apache_kafka, server
from integration.differential import pairs
from integration.server import Server

KSHIM, APACHE_KAFKA = "kshim", "apache-kafka"
OPTIONS = (
    *("--set", "group.initial.rebalance.delay.ms=0"),
    *("--set", "group.min.session.timeout.ms=300"),
)
PATIENT = ("--set", "broker.session.timeout.ms=30000")
"""Nobody kills it here, and a slow machine must not take it for dead."""


@pytest.fixture(scope="session", params=[KSHIM, APACHE_KAFKA])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if request.param == APACHE_KAFKA:
        request.getfixturevalue("class_path")
        command, options = apache_kafka.COMMAND, (*OPTIONS, *PATIENT)
    else:
        command, options = server.COMMAND, OPTIONS
    started = Server(tmp_path_factory.mktemp(request.param) / "data", options, command=command).start()
    asyncio.run(asyncio.wait_for(pairs.wait_loaded(started), pairs.READY_TIMEOUT_S))
    yield started
    assert started.running, started.report()
    assert started.stop() in (0, 143), started.report()  # 143: a JVM's own


@pytest.fixture
def is_kshim(request: pytest.FixtureRequest) -> bool:
    """For an answer of kshim that is meant to differ: the test names the line of docs/differences.md."""
    return bool(request.node.callspec.params["broker"] == KSHIM)
