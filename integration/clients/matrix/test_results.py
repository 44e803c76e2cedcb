"""The page that is made of the results."""

from __future__ import annotations

from pathlib import Path

from integration.clients.matrix.results import (
    APACHE_KAFKA,
    FAILED,
    KSHIM,
    PASSED,
    SKIPPED,
    Result,
    note,
    page,
    read,
)


def test_the_last_result_of_each_scenario_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"

    def has(broker: str, scenario: str, outcome: str, why: str = "", client: str = "a") -> None:
        note(path, Result(client, "1.2", broker, scenario, outcome, why, "2026-01-31"))

    has(KSHIM, "acks: 1", FAILED)
    for broker in (KSHIM, APACHE_KAFKA):
        has(broker, "acks: 1", PASSED)
        has(broker, "seek", SKIPPED, "a: no seek")
        has(broker, "members of different clients: a", PASSED)
        has(broker, "static members", PASSED, client="a-consumer")
    has(KSHIM, "acks: 0", PASSED)
    has(APACHE_KAFKA, "acks: 0", FAILED)
    lines = page(read(path)).splitlines()
    assert "| a 1.2 | 2 of 2 | 1 of 2 | 1 | 2026-01-31 |" in lines
    assert "| acks: 1 | ✓ |" in lines
    assert "| acks: 0 | kshim ✓, Kafka ✗ |" in lines
    assert "| seek | – |" in lines
    assert "* a: no seek (seek)" in lines
    assert "| a | ✓ |" in lines
    classic, consumer = "\n".join(lines).split("## With group.protocol=consumer")
    assert "| static members | ✓ |" in consumer
    assert "static members" not in classic
