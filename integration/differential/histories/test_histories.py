"""Apache Kafka and kshim answer every history in the same way, except for the meant differences."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from integration.differential.histories import HISTORIES
from integration.differential.playing.run import Outcome, Run, runs


@pytest.mark.parametrize("run", runs(HISTORIES), ids=str)
def test_both_answer_the_same(run: Run, outcomes: Mapping[Run, Outcome]) -> None:
    outcome = outcomes[run]
    assert not outcome.is_late, "this machine is too busy for the time-outs of this history"
    assert not outcome.untolerated, "\n".join(
        [*map(str, outcome.untolerated), "The history, as Apache Kafka answered it:", outcome.transcript]
    )
    assert not outcome.stale, "\n".join(outcome.stale)
