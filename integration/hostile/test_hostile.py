"""The quick attacks as tests. `python -m integration.hostile` runs all attacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.hostile.__main__ import main
from integration.hostile.attack import Attack
from integration.hostile.attacks import ATTACKS
from integration.hostile.run import Patience, run
from integration.support.server import FOREIGN_COMMAND

PATIENCE = Patience(factor=4, beside_load=True)
"""Shared processors compute more slowly. An attack that succeeds takes seconds of processor time."""

pytestmark = pytest.mark.skipif(bool(FOREIGN_COMMAND), reason="the bounds are kshim's")


@pytest.mark.parametrize(
    "attack", [pytest.param(attack, id=attack.name) for attack in ATTACKS if attack.quick]
)
def test_bounds_are_kept(attack: Attack, tmp_path: Path) -> None:
    report = run(attack, tmp_path, PATIENCE)
    assert not report.faults, "\n".join(report.faults)


def test_an_unknown_name_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["half-frames", "no-such-attack"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("unknown: no-such-attack; there are ")
    assert all(attack.name in line for attack in ATTACKS)
