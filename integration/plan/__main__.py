"""Play all scenarios with real clients, and print predicted and measured side by side.

python -m integration.plan          prints a table
python -m integration.plan --draw   also writes it between the markers of docs/plan.md

It takes twelve minutes. Run it alone on the machine.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from docs.draw_coordinator import drawn
from integration.plan.comparing import TITLES, Compared
from integration.plan.groups import played
from integration.plan.scenarios import SCENARIOS, Place

PAGE = Path(__file__).parents[2] / "docs" / "plan.md"


def table(found: Sequence[Compared]) -> str:
    """Predicted and measured side by side."""
    rows = [TITLES, ["---"] * len(TITLES), *(each.row() for each in found)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main(arguments: Sequence[str]) -> int:
    """Returns exit status 1 if a prediction is too far from what was measured."""
    with tempfile.TemporaryDirectory() as directory:
        found = [each for place in Place for each in played(place, SCENARIOS, Path(directory))]
    print(table(found))
    faults = [f"{each.scenario.name}: {fault}" for each in found for fault in each.faults()]
    for fault in faults:
        print(fault)
    if "--draw" in arguments:

        def checked() -> str:
            return table(found)

        PAGE.write_text(drawn(PAGE.read_text(), (checked,)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
