"""A few kills as a test; `python -m integration.crash` makes hundreds."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.support.server import FOREIGN_COMMAND

pytest.importorskip("confluent_kafka")

from integration.crash.run import Crashes

KILLS = 5
LEAST_ACKNOWLEDGED = {"plain": 500, "idempotent": 500, "transactions": 10, "copied": 500}


@pytest.mark.skipif(bool(FOREIGN_COMMAND), reason="there is no `check` command")
def test_promises_outlive_kills(tmp_path: Path) -> None:
    verdicts = Crashes(tmp_path / "data", KILLS, seed=7, log=print).run()
    for verdict in verdicts:
        assert verdict.acknowledged >= LEAST_ACKNOWLEDGED[verdict.topic], verdict
