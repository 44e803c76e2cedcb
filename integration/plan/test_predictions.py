"""What the plan predicts of a group is what becomes of it with real clients, within 15 %."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest

from integration.plan.comparing import Compared
from integration.plan.groups import played
from integration.plan.scenarios import SCENARIOS, Scenario
from integration.support.toolchain import or_skip

pytestmark = [
    pytest.mark.kshim_only("it starts Apache Kafka itself"),
    pytest.mark.skipif(
        not importlib.util.find_spec("confluent_kafka"), reason="confluent-kafka is not there"
    ),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Scenario], Compared]:
    """Gives a scenario, played; all those of its server are played when one is asked for."""
    known: dict[Scenario, Compared] = {}

    def of(scenario: Scenario) -> Compared:
        if scenario not in known:
            with or_skip(scenario.place):
                all_of_place = played(scenario.place, SCENARIOS, tmp_path_factory.mktemp("plan"))
            known.update({each.scenario: each for each in all_of_place})
        return known[scenario]

    return of


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_what_is_predicted_is_measured(scenario: Scenario, found: Callable[[Scenario], Compared]) -> None:
    compared = found(scenario)
    assert list(compared.faults()) == [], compared.row()
