"""A test waits for the rebalance that it means."""

from __future__ import annotations

import pytest

from kshim.testing import Rebalance
from kshim.testing.brokers import Again
from kshim.testing.rebalances import check_cause, latest

JOINED, LEFT = "a member joined", "a member left"


def rebalance(generation: int, cause: str) -> Rebalance:
    return Rebalance("g", generation, cause, (), "", "", 1, True, (), (), ())


HAD = [rebalance(1, JOINED), rebalance(2, JOINED), rebalance(3, LEFT)]


@pytest.mark.parametrize(
    ("cause", "after", "generation"), [(None, 0, 3), (JOINED, 0, 2), (JOINED, 1, 2), (LEFT, 2, 3)]
)
def test_the_last_one_that_fits(cause: str | None, after: int, generation: int) -> None:
    assert latest(HAD, cause, after).generation == generation


def test_those_that_do_not_fit_are_listed() -> None:
    expected = "it has had: generation 1 because a member joined; generation 2 because a member joined; "
    with pytest.raises(Again, match=expected):
        latest(HAD, JOINED, 2)
    with pytest.raises(Again, match="it has had no rebalance that is over"):
        latest([], None, 0)


def test_a_cause_that_no_rebalance_has() -> None:
    check_cause(JOINED)
    with pytest.raises(ValueError, match="write one of: a member left"):
        check_cause("a member leaves")
