"""The meant differences: a scenario for each key of docs/differences.md that no history and no story meets.

`scenario` defines one, `playing` plays them all against both servers, `page` reads the table. A scenario
states each server's answer; a server that answers otherwise makes its row untrue.
"""

from integration.differential.differences import (  # noqa: F401 (their scenarios are collected)
    connections,
    consumer_groups,
    fresh,
    groups,
    logins,
    records,
    retention,
    topics,
    transactions,
)
from integration.differential.differences.scenario import SCENARIOS, Scenario

__all__ = ["SCENARIOS", "Scenario"]
