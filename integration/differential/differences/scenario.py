"""A scenario: a function that asks one server, and what it returns of Apache Kafka and of kshim.

    @difference("D-null-records", apache_kafka=NO_ANSWER, kshim="INVALID_RECORD")
    def a_produce_without_records(guest: Guest) -> str:

A scenario of the FRESH pair that is a generator goes on behind its `yield` when its server was killed and has
been started again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from integration.differential.differences.guest import Guest

SHARED, FRESH = "shared", "fresh"
"""The pair that all scenarios share, each with topics and groups of its own; and one that nobody has asked
anything yet: its scenarios begin one after the other, in the order in which they are written."""

Tell = Callable[[Guest], Any]


@dataclass(frozen=True, eq=False)
class Scenario:
    """key: of the row in docs/differences.md. apache_kafka, kshim: what `tell` returns of each."""

    key: str
    tell: Tell
    apache_kafka: Any
    kshim: Any
    pair: str

    @property
    def name(self) -> str:
        return self.tell.__name__

    def __str__(self) -> str:
        return f"{self.key}-{self.name}"


SCENARIOS: list[Scenario] = []


def difference(key: str, *, apache_kafka: Any, kshim: Any, pair: str = SHARED) -> Callable[[Tell], Tell]:
    def add(tell: Tell) -> Tell:
        SCENARIOS.append(Scenario(key, tell, apache_kafka, kshim, pair))
        return tell

    return add
