"""What users see of a run: a live view in a terminal, plain lines elsewhere, and the results at the end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Self

from rich.bar import Bar
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

from kshim.coordination.groups.trigger import Trigger
from kshim.demo.checks import Check, broken, checks
from kshim.demo.scene import PARTITIONS, Partitions, Scene

if TYPE_CHECKING:
    from pathlib import Path

    from kshim.testing.rebalances import Rebalance

COLOURS = {"consumer-1": "blue", "consumer-2": "magenta", "consumer-3": "cyan"}
STATE_STYLES = {
    "joining": "yellow",
    "rebalancing": "yellow",
    "consuming": "green",
    "killed": "bold red",
    "leaving": "yellow",
    "left": "dim",
}
NARROW = 80
BAR_WIDTH = 8
FULL_BAR = 500
"""The lag, in records, that fills the bar."""
DRAW_EVERY_MS = 100
FIGURES_EVERY_MS = 2_000


class Screen:
    """Shows a run under way. As a context manager it ends a live view, whose last state stays."""

    def __init__(self, console: Console) -> None:
        self.console = console
        draws = console.is_terminal and not console.is_dumb_terminal and console.encoding.startswith("utf")
        self.live = Live(console=console, auto_refresh=False) if draws else None
        self._due_ms = 0
        """When the view is drawn, or the figures are printed, again."""
        self._events = 0
        """How many events have been printed."""
        self._printed: set[str] = set()

    def show(self, scene: Scene) -> None:
        """Draw the state, or print lines for all that is new."""
        is_due = scene.at_ms >= self._due_ms
        if is_due:
            self._due_ms = scene.at_ms + (DRAW_EVERY_MS if self.live else FIGURES_EVERY_MS)
        if self.live:
            self.live.update(Group(members_panel(scene, NARROW), story_table(scene)), refresh=is_due)
            return
        lines = [
            (e["at_ms"], f"  {e['name']} has {e['partitions']} in generation {e['generation']}")
            for e in scene.history[self._events :]
            if e["event"] == "assigned"
        ]
        self._events = len(scene.history)
        for step in scene.steps:
            lines.append((step.began_ms, f"* {step.title}"))
            if step.done_ms is not None:
                lines.append((step.done_ms, f"  done: {step.title}"))
        for each in scene.rebalances:
            lines.append((scene.at_ms, f"  generation {each.generation}: {each.story[0]}"))
        if is_due:
            lines.append((scene.at_ms, f"  {figures(scene)}"))
        for at_ms, line in sorted(lines):
            if line not in self._printed:
                self._printed.add(line)
                text = f"{seconds(at_ms - scene.began_ms):>7}  {line}"
                self.console.print(text, highlight=False, soft_wrap=True, markup=False)
        self.console.file.flush()

    def __enter__(self) -> Self:
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.live:
            self.live.refresh()
            self.live.stop()


def seconds(ms: int) -> str:
    """A time since the run began, to a tenth of a second."""
    return f"{ms / 1000:.1f} s"


def figures(scene: Scene) -> str:
    """How many records were acknowledged and received, and are not yet committed."""
    sent, received = scene.records("producer"), scene.records("consumer")
    lag = scene.looks[-1].lag() if scene.looks else 0
    return f"{sent:,} acknowledged, {received:,} received, {lag:,} not yet committed"


# ---- the live view


def cells(name: str, held: Partitions, lives: bool) -> Text:
    """One cell per partition, always in the same place; those in `held` are coloured."""
    style = f"bold white on {COLOURS[name]}" if lives else "red strike"
    every = ((f" {p} ", style) if p in held else (" · ", "dim") for p in range(PARTITIONS))
    return Text.assemble(*every)


def members_table(scene: Scene) -> Table:
    """A row for each member: its state, generation, partitions, lag and records received."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title, width in (("member", 10), ("state", 11), ("gen", 3), ("partitions", 3 * PARTITIONS)):
        table.add_column(title, no_wrap=True, min_width=width)
    table.add_column("lag", width=BAR_WIDTH)
    table.add_column("", justify="right", min_width=4)
    table.add_column("received", justify="right")
    for name, colour in COLOURS.items():
        if not (member := scene.workers.get(name)):
            table.add_row("")
            continue
        held = scene.held_by(name)
        lag = scene.looks[-1].lag(held)
        style = "red" if lag * 2 > FULL_BAR else "yellow" if lag * 5 > FULL_BAR else "green"
        table.add_row(
            Text(name, f"bold {colour}" if member.lives else "dim"),
            Text(member.state, STATE_STYLES[member.state]),
            "" if member.generation is None else str(member.generation),
            cells(name, held, member.lives),
            Bar(FULL_BAR, 0, lag, width=BAR_WIDTH, color=style),
            f"{lag:,}" if held else "",
            f"{member.records:,}",
        )
    return table


def server_line(scene: Scene) -> Text:
    """The server and the group, in one line."""
    style = {"ready": "bold green", "killed": "bold white on red"}.get(scene.server, "yellow")
    text = Text.assemble("server ", (scene.address, "bold"), " ", (scene.server, style), no_wrap=True)
    if scene.generation is not None:
        if scene.server == "ready":
            state = scene.looks[-1].state
            text.append("   group ").append(state, "green" if state == "Stable" else "yellow")
        text.append(f"   generation {scene.generation}")
    return text


def members_panel(scene: Scene, width: int) -> Panel:
    """The panel with the server, the members, the counts of records, and why the group last rebalanced."""
    why = Text(
        scene.rebalances[-1].story[0] if scene.rebalances else "", "dim", no_wrap=True, overflow="ellipsis"
    )
    body = Group(server_line(scene), Text(), members_table(scene), Text(), figures(scene), why)
    return Panel(
        body, title="kshim demo", title_align="left", border_style="dim", padding=(0, 1), width=width
    )


def story_table(scene: Scene) -> Table:
    """The steps so far: when each was done, and in which generation the group was then."""
    table = Table("", Column(justify="right"), "", "", box=None, show_header=False, pad_edge=False)
    for step in scene.steps:
        generation = f"generation {step.generation}" if step.generation else ""
        mark, style = (
            ("✔", "green") if step.done_ms else ("✘", "bold red") if scene.failure else ("▸", "yellow")
        )
        at = seconds((step.done_ms or scene.at_ms) - scene.began_ms)
        table.add_row(Text(mark, style), at, step.title, Text(generation, "dim"))
    return table


# ---- the results


def titled(title: str) -> Table:
    """An empty table of two columns under its title."""
    return Table(
        Column(no_wrap=True, justify="right"), "",
        box=None, title=Text(title, "bold"), title_justify="left", show_header=False, pad_edge=False,
    )  # fmt: skip


def why_table(rebalances: Sequence[Rebalance]) -> Table:
    """The server's account of each rebalance."""
    table = titled("Why the group rebalanced, by generation, as kshim why says it")
    for each in rebalances:
        table.add_row(Text(str(each.generation), "bold"), Text("\n".join(each.story)))
    return table


def check_table(found: Sequence[Check]) -> Table:
    """A row for each check: whether it holds, its promise and its figures."""
    table = titled("Checks")
    for check in found:
        mark = Text("ok", "green") if check.holds else Text("FAILED", "bold red")
        table.add_row(mark, Text.assemble(check.promise, (f"\n{check.detail}", "dim")))
    return table


def report(console: Console, scene: Scene) -> bool:
    """Print why the group rebalanced, then the checks or why the run failed. Return True if all checks
    hold.
    """
    outcome = broken(scene) if scene.failure else checks(scene)
    console.print("", why_table(scene.rebalances), "", sep="\n")
    if outcome:
        console.print(check_table(outcome))
    if scene.failure:
        console.print(Text(f"failed: {scene.failure}", "bold red"), soft_wrap=True)
    return not scene.failure and all(check.holds for check in outcome)


def save_svg(members: RenderableType, scene: Scene, path: Path) -> None:
    """Save a picture of the members at one moment, the steps, the death of a member, and the checks."""
    console = Console(record=True, width=NARROW, file=StringIO(), force_terminal=True)
    died = [each for each in scene.rebalances if each.cause == Trigger.SESSION_EXPIRED]
    parts = (members, story_table(scene), "", why_table(died), "", check_table(checks(scene)))
    console.print(*parts, sep="\n")
    # Remove the web fonts: the picture must not need a network.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="kshim demo"), flags=re.DOTALL)
    path.write_text(svg, encoding="utf-8")
