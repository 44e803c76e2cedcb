"""Both servers, and one of kshim of which one line is awaited."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from integration import apache_kafka
from integration.java.conftest import run_tool
from integration.support.awaiting import wait_until
from integration.support.server import Server
from kshim.callers.mistake import Mistake

__all__ = ["run_tool", "told"]

TIMEOUT_S = 20
Told = Callable[..., str]


@pytest.fixture
def both(
    class_path: str, new_server: Callable[..., Server], tmp_path: Path
) -> Iterator[tuple[Server, Server]]:
    """Apache Kafka and kshim."""
    theirs = new_server(data_dir=tmp_path / "apache-kafka", command=apache_kafka.COMMAND).start()
    yield theirs, new_server().start()
    theirs.stop()


@pytest.fixture
def told(own_server: Server) -> Told:
    """told(mistake, **details): asserts that the log's only warning is about this mistake."""

    def warnings() -> list[str]:
        return [line for line in own_server.log if " INFO " not in line]

    def told(mistake: Mistake, details: Mapping[str, object] | None = None) -> str:
        wait_until(warnings, TIMEOUT_S, own_server.report)
        (line,) = warnings()
        assert line.endswith(mistake.line(**(details or {}))), line
        return line

    return told
