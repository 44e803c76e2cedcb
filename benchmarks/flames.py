"""Flame graphs of kshim's processor time under a load.

Each function is a bar as wide as its share of the time, below its caller. The colour stands for the
room.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

WIDTH, HEIGHT = 1_100, 17
LETTER = 6.6
"""The width of a letter."""
LEAST = 0.003
"""Functions with a smaller share are left out."""
MOST_LEVELS = 24
COLOURS = {
    "schemas": "#7fb685",
    "kshim.network": "#8fb4d9",
    "kshim.api": "#e0b36a",
    "kshim.coordination": "#d98f8f",
    "kshim.storage": "#b49ad1",
    "kshim.producing": "#d9a6c2",
    "kshim.fetching": "#a3c4bc",
    "kshim": "#c2cdd6",
    "twisted": "#dddddd",
}
OTHER = "#eeeeee"
MAIN_LOOP = ".mainLoop"
"""Of Twisted's reactor."""


@dataclass
class Bar:
    """A function, called by the one above."""

    name: str
    times: int = 0
    below: dict[str, Bar] = field(default_factory=dict)


def grown(stacks: Iterable[tuple[list[str], int]]) -> Bar:
    """The bars of what the reactor calls; what the process does before and afterwards is left out."""
    root = Bar("the reactor")
    for stack, times in stacks:
        first = next((at + 1 for at, name in enumerate(stack) if name.endswith(MAIN_LOOP)), None)
        if first is None:
            continue
        root.times += times
        bar = root
        for name in stack[first:]:
            bar = bar.below.setdefault(name, Bar(name))
            bar.times += times
    return root


def draw(samples: Path, picture: Path, title: str) -> None:
    """Draw the stacks that `sampled` has written, as SVG."""
    root = grown(json.loads(line) for line in samples.read_text().splitlines())
    rows = list(_rows(root, root.times))
    levels = max((level for level, *_ in rows), default=0) + 1
    height = (levels + 2) * HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="monospace" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/><text x="4" y="14">{escape(title)}, '
        f"{root.times} samples of 1 ms</text>"
    ]
    for level, left, share, name in rows:
        x, width, y = left * WIDTH, share * WIDTH, (level + 1) * HEIGHT + 4
        short = ".".join(name.split(".")[-2:])[: max(int((width - 4) / LETTER), 0)]
        box = f'x="{x:.1f}" y="{y}" width="{max(width - 0.5, 0.3):.1f}" height="{HEIGHT - 1}"'
        text = f'<text x="{x + 2:.1f}" y="{y + 12}">{escape(short)}</text>' if short else ""
        bar = f'<rect {box} fill="{_colour(name)}"/>{text}'
        lines.append(f"<g><title>{escape(name)}: {share:.1%}</title>{bar}</g>")
    picture.write_text("\n".join([*lines, "</svg>", ""]))


def _rows(root: Bar, all_times: int) -> Iterator[tuple[int, float, float, str]]:
    """Level, left end and share of each bar."""
    waiting = [(root, 0, 0.0)]
    while waiting:
        bar, level, left = waiting.pop()
        yield level, left, bar.times / all_times, bar.name
        for each in sorted(bar.below.values(), key=lambda bar: -bar.times):
            share = each.times / all_times
            if share >= LEAST and level < MOST_LEVELS:
                waiting.append((each, level + 1, left))
            left += share


def _colour(name: str) -> str:
    return next((colour for room, colour in COLOURS.items() if name.startswith(room)), OTHER)
