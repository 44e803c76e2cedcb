"""The commands about faults, as the control socket runs them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kshim.control.commands import SteeringError, run
from tests.faults.world import World


def test_faults_are_added_listed_and_removed() -> None:
    world = World()
    commands = world.steering.commands()
    assert run(commands, "list-faults", []) == []
    assert run(commands, "remove-faults", []) == 0
    added = run(commands, "add-fault", [{"api": "Heartbeat", "error": "NOT_COORDINATOR", "times": 2}])
    assert added == {
        "number": 1,
        "does": "error NOT_COORDINATOR",
        "to": "Heartbeat",
        "when": "2 times",
        "is_in_force": True,
        "matched": 0,
        "struck": 0,
    }
    peer = world.connect()
    for _ in range(3):
        peer.beat()
    over = {**added, "is_in_force": False, "matched": 2, "struck": 2}
    assert run(commands, "list-faults", []) == [over]
    run(commands, "add-fault", [{"delay_ms": 5, "probability": 0.5}])
    assert "probability 0.5, seed " in run(commands, "list-faults", [])[1]["when"]
    assert run(commands, "remove-fault", [1]) == over
    assert run(commands, "remove-faults", []) == 1
    assert run(commands, "list-faults", []) == []


def test_what_is_refused() -> None:
    commands = World().steering.commands()
    with pytest.raises(SteeringError, match="did you mean NOT_COORDINATOR"):
        run(commands, "add-fault", [{"error": "NOT_CORDINATOR"}])
    with pytest.raises(SteeringError, match="no fault 1; there are none"):
        run(commands, "remove-fault", [1])


def test_nothing_of_faults_is_imported_before_the_first() -> None:
    code = """
import sys, kshim.server.server, kshim.server.local
from kshim.control.faults import FaultSteering
steering = FaultSteering({}, {}, None, None, None)
assert (steering.describe(), steering.remove_all()) == ([], 0)
print([name for name in sys.modules if name.startswith("kshim.faults")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
