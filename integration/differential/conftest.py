"""Starts the pairs that the selected histories need, and plays all of them at once before the first test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

import pytest

from integration.apache_kafka.jars import fetch_class_path
from integration.differential import pairs
from integration.differential.run import Outcome, Run, play_all
from integration.maven import JarsMissing

_compared = pytest.StashKey[tuple[int, int, int]]()


@pytest.fixture(scope="session")
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[Run, Outcome]:
    """What came of each selected run. What is missing on this machine is an error in CI, a skip elsewhere."""
    try:
        fetch_class_path()
    except JarsMissing as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"Apache Kafka cannot run: {error}")
    specs = (getattr(item, "callspec", None) for item in request.session.items)
    selected = [spec.params["run"] for spec in specs if spec is not None and "run" in spec.params]
    names = sorted({run.history.pair for run in selected})
    directory = tmp_path_factory.mktemp("pairs")
    started: dict[str, pairs.Pair] = {}
    try:
        for name in names:  # one after the other: a JVM that starts takes all cores
            started[name] = pairs.start(name, directory / name)
        result, played_twice = asyncio.run(play_all(selected, started))
        reports = {name: pair.report() for name, pair in started.items() if not _is_well(pair)}
        assert not reports, reports
    finally:
        for pair in started.values():
            pair.stop()
    responses = sum(outcome.responses for outcome in result.values())
    request.config.stash[_compared] = len(result), responses, played_twice
    return result


def _is_well(pair: pairs.Pair) -> bool:
    return pair.apache_kafka.running and pair.kshim.running


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if compared := terminalreporter.config.stash.get(_compared, None):
        text = "{} histories with {} responses of each server compared; {} histories were played twice"
        terminalreporter.write_line(text.format(*compared))
