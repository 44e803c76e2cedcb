"""Every meant difference is real: Apache Kafka and kshim answer as each row of docs/differences.md says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from integration.differential.differences import SCENARIOS, Scenario, page
from integration.differential.differences.playing import PLAY, Seen, started
from integration.differential.histories import HISTORIES
from integration.differential.playing.run import runs
from integration.differential.stories.administrators import meant_in_stories
from integration.differential.tls.listening import MEANT
from integration.differential.words.history import tolerated


@pytest.fixture(scope="module")
def seen(
    request: pytest.FixtureRequest, class_path: str, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[Scenario, tuple[Seen, Seen]]:
    """The results of Apache Kafka and kshim in each selected scenario."""
    specs = (getattr(item, "callspec", None) for item in request.session.items)
    selected = [spec.params["scenario"] for spec in specs if spec is not None and "scenario" in spec.params]
    directory = tmp_path_factory.mktemp("differences")
    result: dict[Scenario, tuple[Seen, Seen]] = {}
    for pair, play in PLAY.items():
        some = [scenario for scenario in selected if scenario.pair == pair]
        if some:
            with started(pair, directory / pair) as servers, ThreadPoolExecutor() as threads:
                theirs, ours = threads.map(partial(play, some), servers)
            result |= {scenario: (theirs[scenario], ours[scenario]) for scenario in some}
    return result


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_both_answer_as_the_page_says(
    scenario: Scenario, seen: Mapping[Scenario, tuple[Seen, Seen]], compared: Callable[[int], None]
) -> None:
    theirs, ours = (future.result() for future in seen[scenario])
    assert scenario.apache_kafka != scenario.kshim
    assert theirs == scenario.apache_kafka, f"Apache Kafka: the row {scenario.key} is no longer true"
    assert ours == scenario.kshim, f"kshim: the row {scenario.key} is no longer true"
    compared(1)


def test_every_key_is_met_by_a_test_and_every_met_key_stands_in_the_table() -> None:
    met = {scenario.key for scenario in SCENARIOS} | meant_in_stories()
    met.add(MEANT)
    met |= {tolerated(step) for run in runs(HISTORIES) for step in run.history.at(run.era)} - {""}
    assert met == {row.key for row in page.rows() if row.key}


def test_every_row_has_a_key_of_its_own_or_a_reason_why_it_has_none() -> None:
    rows = page.rows()
    assert not _twice(row.key for row in rows if row.key)
    assert not _twice(row.what for row in rows)
    assert {row.reason for row in rows} - {""} == page.legend()
    assert [row.what for row in rows if not row.key and not row.reason] == []


def _twice(values: Iterable[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]
