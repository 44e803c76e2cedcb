"""Whole histories of transactional producers on a broker that crashes, each from a seed."""

from __future__ import annotations

import logging

import pytest

from tests.simulation.transactions.simulated import run

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("seed", range(12))
def test_every_transaction_is_committed_or_aborted_as_a_whole(seed: int) -> None:
    logging.disable(logging.ERROR)
    try:
        world = run(seed, 1_500)
    finally:
        logging.disable(logging.NOTSET)
    outcomes = [transaction.outcome for transaction in world.transactions if transaction.acknowledged]
    assert outcomes.count("commit") > 5, "the history is about nothing"
    assert world.crashes > 3
