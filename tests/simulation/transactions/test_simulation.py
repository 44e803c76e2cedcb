"""Random histories of transactional producers on a broker that crashes, each from a seed."""

from __future__ import annotations

import logging

import pytest

from tests.simulation.transactions.simulated import run

pytestmark = pytest.mark.thorough


ONCE_FAILED: list[int] = []
"""Seeds that once found a fault."""


@pytest.mark.parametrize("seed", [*range(12), *ONCE_FAILED])
def test_every_transaction_is_committed_or_aborted_as_a_whole(seed: int) -> None:
    logging.disable(logging.ERROR)
    try:
        outcome = run(seed)
    finally:
        logging.disable(logging.NOTSET)
    outcome.check()
    assert outcome.counts["committed"] > 5, "no transaction took place"
    assert outcome.counts["crashes"] > 3
