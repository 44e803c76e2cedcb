"""The report's plots as SVG, made of strings.

In a plot each step is one unit wide, and the plot is stretched to the width of the page. So it contains no
text; the labels are HTML beside it. Each step has a title, which browsers show under the pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import Final

from kshim.spark.report.values import Mark

HEIGHT: Final = 100
"""The height of a plot in its own units."""


def area(values: Mapping[int, int], top: int, steps: int) -> str:
    """A stepped area for each run of steps with values. top: the value at the upper edge."""
    return "".join(
        f'<path class="area" d="M{first} {HEIGHT}{_stairs(run, first, top)}V{HEIGHT}Z"/>'
        f'<path class="line" d="M{first} {_y(run[0], top)}{_stairs(run, first, top)}"/>'
        for first, run in _runs(values, steps)
    )


def bars(values: Mapping[int, int], top: int) -> str:
    """A bar for each step."""
    drawn = (
        f"M{step + 0.1:g} {HEIGHT}V{_y(value, top)}h.8V{HEIGHT}Z"
        for step, value in sorted(values.items())
        if value
    )
    return f'<path class="bars" d="{"".join(drawn)}"/>'


def ticks(marks: Iterable[Mark]) -> str:
    """A vertical line for each mark, in the colour of its kind."""
    return "".join(
        f'<path class="tick {escape(mark.kind)}" d="M{mark.step + 0.5:g} 0V{HEIGHT}"/>' for mark in marks
    )


def plot(
    *drawn: str, steps: int, label: str, tips: Callable[[int], str] | None = None, kind: str = ""
) -> str:
    """One plot. label: a description for screen readers. tips: returns the title of a step."""
    over = "".join(_tip(step, tips(step)) for step in range(steps)) if tips else ""
    return (
        f'<svg class="plot {kind}" viewBox="0 0 {steps} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}">{"".join(drawn)}{over}</svg>'
    )


def _tip(step: int, text: str) -> str:
    if not text:
        return ""
    return f'<rect class="tip" x="{step}" width="1" height="{HEIGHT}"><title>{escape(text)}</title></rect>'


def _y(value: float, top: int) -> str:
    """The y coordinate of a value. The upper edge stays free for the line's width."""
    return f"{HEIGHT - (HEIGHT - 2) * min(value / top, 1) if top else HEIGHT:.4g}"


def _stairs(run: list[int], first: int, top: int) -> str:
    """The path of the steps' upper edges, from left to right. Equal neighbours share one line."""
    drawn, x = [], first
    for index, value in enumerate(run):
        x = first + index + 1
        if index + 1 == len(run) or run[index + 1] != value:
            drawn.append(f"V{_y(value, top)}H{x}")
    return "".join(drawn)


def _runs(values: Mapping[int, int], steps: int) -> list[tuple[int, list[int]]]:
    """The runs of neighbouring steps that have values: the first step, and the values."""
    runs: list[tuple[int, list[int]]] = []
    for step in range(steps):
        if step not in values:
            continue
        if step - 1 in values and runs:
            runs[-1][1].append(values[step])
        else:
            runs.append((step, [values[step]]))
    return runs
