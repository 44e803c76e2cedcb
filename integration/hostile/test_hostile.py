"""The quick attacks as tests; `python -m integration.hostile` has all."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.hostile.attack import Attack
from integration.hostile.attacks import ATTACKS
from integration.hostile.run import Patience, run
from integration.support.server import FOREIGN_COMMAND

PATIENCE = Patience(factor=5, beside_load=True)

pytestmark = pytest.mark.skipif(bool(FOREIGN_COMMAND), reason="the bounds are kshim's")


@pytest.mark.parametrize(
    "attack", [pytest.param(attack, id=attack.name) for attack in ATTACKS if attack.quick]
)
def test_bounds_are_kept(attack: Attack, tmp_path: Path) -> None:
    assert run(attack, tmp_path, PATIENCE).faults == []
