"""A broker of each test's own: kshim, then Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.clients.conftest import APACHE_KAFKA, COMMANDS
from integration.differential.playing import pairs
from integration.support.server import Server

OPTIONS = ("--set", "transaction.abort.timed.out.transaction.cleanup.interval.ms=500")
"""The transaction of a killed program is aborted soon after its timeout."""
RESTARTS = ("--set", "broker.session.timeout.ms=6000")
"""Apache Kafka's broker registers again when its killed predecessor's session has ended."""


@pytest.fixture(params=COMMANDS)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    command, options = COMMANDS[request.param]
    if request.param == APACHE_KAFKA:
        request.getfixturevalue("class_path")
        options = (*options, *RESTARTS)
    server = Server(tmp_path / "data", (*options, *OPTIONS), command=command).start()
    asyncio.run(asyncio.wait_for(pairs.wait_loaded(server), pairs.READY_TIMEOUT_S))
    yield server
    if server.running:
        server.kill()
