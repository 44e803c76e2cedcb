"""Apache Kafka and kshim answer every history in the same way, but for the differences that are meant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from integration.differential.admin_stories import MEANT
from integration.differential.histories import HISTORIES
from integration.differential.history import tolerated
from integration.differential.run import Outcome, Run, runs

DIFFERENCES = Path(__file__).parents[2] / "docs" / "differences.md"


@pytest.mark.parametrize("run", runs(HISTORIES), ids=str)
def test_both_answer_the_same(run: Run, outcomes: Mapping[Run, Outcome]) -> None:
    outcome = outcomes[run]
    assert not outcome.is_late, "this machine is too busy for the time-outs of this history"
    assert not outcome.untolerated, "\n".join(
        [*map(str, outcome.untolerated), "The history, as Apache Kafka answered it:", outcome.transcript]
    )
    assert not outcome.stale, "\n".join(outcome.stale)


def test_every_tolerated_difference_stands_in_the_table() -> None:
    listed = re.findall(r"^\| `(D-[a-z-]+)` \|", DIFFERENCES.read_text(), re.MULTILINE)
    met = {tolerated(step) for run in runs(HISTORIES) for step in run.history.at(run.era)}
    assert len(listed) == len(set(listed))
    assert (met - {""}) | MEANT == set(listed)
