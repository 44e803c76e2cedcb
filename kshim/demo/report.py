"""The end of a run: its results printed, or saved as a picture."""

import re
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from kshim.demo.checks import broken, checks
from kshim.demo.picture import NARROW, picture_at
from kshim.demo.rebalances import rebalances
from kshim.demo.results import check_table, rebalance_table
from kshim.demo.scene import Scene
from kshim.demo.story import VICTIM, Progress

SHORTLY_MS = 1_000


def report(console: Console, scene: Scene) -> bool:
    """Print the rebalances, then the checks or why the run failed. Return True if all checks hold."""
    console.print()
    if found := rebalances(scene.history):
        console.print(rebalance_table(found, scene.began_ms, scene.partitions))
    if scene.failure:
        if wrong := broken(scene.history):
            console.print(check_table(wrong))
        console.print(Text(f"failed: {scene.failure}", "bold red"), soft_wrap=True)
        return False
    outcome = checks(scene.history)
    console.print(check_table(outcome))
    return all(check.holds for check in outcome)


def save_picture(scene: Scene, story: Sequence[Progress], path: Path) -> None:
    """Save an SVG of the view shortly before the dead member's partitions moved, and of the results."""
    console = Console(record=True, width=NARROW, file=StringIO(), force_terminal=True)
    for row in rebalances(scene.history):
        if row.cause == f"{VICTIM} is killed":
            console.print(picture_at(scene, story, (row.noticed_ms or row.done_ms) - SHORTLY_MS, NARROW))
    report(console, scene)
    # Remove the web fonts: the picture must not need a network.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="kshim demo"), flags=re.DOTALL)
    path.write_text(svg, encoding="utf-8")
