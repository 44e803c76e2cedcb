"""What is meant to differ: a scenario for each key of docs/differences.md that no history and no story meets.

`scenario` says what one is, `playing` plays them all against both servers, `page` reads the table. A scenario
says what each server answers; where one of them answers otherwise, its row is no longer true.
"""

from integration.differential.differences import (  # noqa: F401 (their scenarios are collected)
    connections,
    fresh,
    groups,
    records,
    retention,
    topics,
    transactions,
)
from integration.differential.differences.scenario import SCENARIOS, Scenario

__all__ = ["SCENARIOS", "Scenario"]
