"""What `integration.torture.seeds` plays, writes and prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from integration.torture.seeds import (
    BROKEN,
    HOLDS,
    Part,
    Played,
    Runs,
    broken,
    chosen,
    found_table,
    held_table,
    twins,
)

pytestmark = pytest.mark.kshim_only("it starts kshim")


def test_every_twin_has_a_name_of_its_own() -> None:
    names = [part.name for part in (*twins(), *broken())]
    assert len(names) == len(set(names))
    assert "confluent-kept-static-id-for-fenced-and-deaf" in names


def test_programs_are_chosen_in_the_order_of_the_words() -> None:
    names = [part.name for part in chosen(twins(), ("java-transactions", "java", ""))]
    assert names[0] == "java-transactions-for-transactions-without-fencing"
    assert all(name.startswith("java") for name in names[:3])
    assert len(names) == len(twins())


def test_a_run_that_is_broken_leaves_its_page_and_a_line(tmp_path: Path) -> None:
    part = Part("early", "kafka_python", "commit-first", ("--report", "--for", "3s", "--faults", "kill"))
    found = Runs(tmp_path).play_until_found(part)
    assert found.verdict == BROKEN
    assert "lost" in found.findings
    assert "input-" in found.story
    for name in ("story.html", "s.json", "said.txt", "c1.log", "notes.jsonl"):
        assert (tmp_path / f"early-{found.seed}" / name).exists()
    lines = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert [(line["seed"], line["verdict"]) for line in lines[-1:]] == [(found.seed, BROKEN)]
    assert not any(
        (tmp_path / f"early-{line['seed']}").exists() for line in lines if line["verdict"] == HOLDS
    )


def test_the_tables_count_the_last_run_of_each_seed() -> None:
    mended, bad = twins()[0], broken()[0]
    runs = [
        Played(mended.name, 1, BROKEN, 10, 1, "2 lost", "…"),
        Played(mended.name, 2, HOLDS, 20, 1, "", ""),
        Played(mended.name, 1, HOLDS, 30, 1, "", ""),
        Played(bad.name, 1, HOLDS, 10, 1, "", ""),
        Played(bad.name, 2, BROKEN, 11, 1, "3 lost", "input-0@7: lost"),
    ]
    assert "| `mended` (kafka-python) | `--report` | 2 of 2 | 25 |  |" in held_table(runs)
    assert "| `commit-first` (kafka-python) | 2 | 21 | 3 lost | input-0@7: lost |" in found_table(runs)
