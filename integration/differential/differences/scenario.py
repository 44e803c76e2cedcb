"""A scenario: a function that asks one server, and what it must return from Apache Kafka and from kshim.

    @difference("D-null-records", apache_kafka=NO_ANSWER, kshim="INVALID_RECORD")
    def a_produce_without_records(guest: Guest) -> str:

A scenario of the FRESH pair may be a generator: at its `yield` the server is killed and started again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from integration.differential.differences.guest import NO_ANSWER, PATIENCE_S, SILENCE_S, Guest

SHARED, FRESH, SASL = "shared", "fresh", "sasl"
"""SHARED is the pair that scenarios share, each with its own topics and groups. FRESH has not been asked
anything yet; its scenarios begin one after the other, in the order in which they are written. SASL has a
listener where clients authenticate."""

Tell = Callable[[Guest], Any]


@dataclass(frozen=True, eq=False)
class Scenario:
    """One meant difference."""

    key: str
    """The key of its row in docs/differences.md."""
    tell: Tell
    apache_kafka: Any
    """The result of `tell` for Apache Kafka."""
    kshim: Any
    """The result of `tell` for kshim."""
    pair: str

    @property
    def name(self) -> str:
        return self.tell.__name__

    @property
    def patience_s(self) -> float:
        """How long an answer is awaited: not for long where a server never sends one."""
        return SILENCE_S if NO_ANSWER in (self.apache_kafka, self.kshim) else PATIENCE_S

    def __str__(self) -> str:
        return f"{self.key}-{self.name}"


SCENARIOS: list[Scenario] = []


def difference(key: str, *, apache_kafka: Any, kshim: Any, pair: str = SHARED) -> Callable[[Tell], Tell]:
    def add(tell: Tell) -> Tell:
        SCENARIOS.append(Scenario(key, tell, apache_kafka, kshim, pair))
        return tell

    return add
