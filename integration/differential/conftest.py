"""Starts each needed pair of servers once, and plays all selected histories at once before the first test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from integration.apache_kafka.jars import RELEASE
from integration.differential.older import needs_newer, shows_nothing
from integration.differential.playing import pairs
from integration.differential.playing.pairs import Pair
from integration.differential.playing.run import Outcome, Run, play_all, summary

FOLDER = "differential/"
COMPARED = "answers compared"
_summaries = pytest.StashKey[list[str]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the tests of what is newer than the judge to fail."""
    for item in items:
        _, here, test_id = item.nodeid.partition(FOLDER)
        if here and (change := needs_newer(test_id, RELEASE)):
            item.add_marker(pytest.mark.xfail(reason=change, strict=True))
        if here and (change := shows_nothing(test_id, RELEASE)):
            item.add_marker(pytest.mark.skip(reason=change))


@pytest.fixture(scope="session")
def pair_named(class_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Pair]]:
    """Gives the pair of a name. All tests share it, so each keeps to its own groups and topics."""
    directory = tmp_path_factory.mktemp("pairs")
    started: dict[str, Pair] = {}

    def named(name: str) -> Pair:
        if name not in started:  # one after the other: a JVM that starts takes all cores
            started[name] = pairs.start(name, directory / name)
        return started[name]

    yield named
    reports = [pair.report() for pair in started.values() if not _is_well(pair)]
    for pair in started.values():
        pair.stop()
    assert not reports, "\n".join(reports)


@pytest.fixture(scope="session")
def outcomes(
    request: pytest.FixtureRequest, pair_named: Callable[[str], Pair], report: Callable[[str], None]
) -> Mapping[Run, Outcome]:
    """The outcome of each selected run."""
    specs = (getattr(item, "callspec", None) for item in request.session.items)
    selected = [spec.params["run"] for spec in specs if spec is not None and "run" in spec.params]
    needed = {name: pair_named(name) for name in sorted({run.history.pair for run in selected})}
    result = asyncio.run(play_all(selected, needed))
    report(summary(result.values()))
    return result


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """A function that takes a line to show when all tests are done."""
    return request.config.stash.setdefault(_summaries, []).append


@pytest.fixture
def compared(record_property: Callable[[str, object], None]) -> Callable[[int], None]:
    """Counts answers of each server that a test has compared. All tests' sum is shown at the end, also if
    they ran in several processes.
    """
    return partial(record_property, COMPARED)


def _is_well(pair: Pair) -> bool:
    return pair.apache_kafka.running and pair.kshim.running


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in terminalreporter.config.stash.get(_summaries, []):
        terminalreporter.write_line(line)
    properties = (
        each
        for reports in terminalreporter.stats.values()
        for report in reports
        for each in _properties(report)
    )
    if answers := sum(count for name, count in properties if name == COMPARED):
        terminalreporter.write_line(f"{answers} answers of each server compared in stories and tables")


def _properties(report: object) -> Iterable[tuple[str, Any]]:
    """The records of a test; its last report has all of them."""
    return report.user_properties if getattr(report, "when", "") == "call" else ()
