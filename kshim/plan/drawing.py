"""Draws a plan as SVG: a panel for each setting, with the share of partitions without an owner over time.

Pauses take milliseconds and deployments hours. So each column of pixels shows two values: the highest share
in its time, light, and the mean share, dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import Final, NamedTuple

from kshim.plan.deployment import Act, Deployment, Kind
from kshim.plan.figures import unowned_steps
from kshim.plan.ledger import Span
from kshim.plan.run import Predicted

WIDTH, LEFT, RIGHT = 900, 54, 26
COLUMNS: Final = WIDTH - LEFT - RIGHT
TOP, PANEL, GAP, BOTTOM = 58, 90, 34, 30
LETTER = 8
"""More than the mean width of a letter."""
SHARES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0)
"""The values that the upper edge of the panels may stand for: the least one that is high enough."""
UNITS_MS: Final[Sequence[tuple[int, str]]] = ((3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))
MOST_TICKS = 12
STEPS: Final = (1, 2, 5, 10, 15, 20, 30, 60, 100, 200, 500, 1_000)
COLOURS: Final = {Kind.START: "#16a34a", Kind.CLOSE: "#d97706", Kind.CRASH: "#dc2626"}
NAMES: Final = {Kind.START: "starts", Kind.CLOSE: "is closed", Kind.CRASH: "crashes"}


class Column(NamedTuple):
    """The shares of partitions without an owner in the time of one column, from 0 to 1."""

    highest: float
    mean: float


def drawn(outcomes: Sequence[Predicted], deployment: Deployment, duration_ms: int, partitions: int) -> str:
    """The first run of each setting as an SVG document."""
    panels = [columns(each.runs[0].happened.unowned, duration_ms, partitions) for each in outcomes]
    highest = max((column.highest for panel in panels for column in panel), default=0.0)
    top = next((share for share in SHARES if share >= highest), 1.0)
    height = TOP + len(outcomes) * (PANEL + GAP) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="ui-sans-serif, system-ui, sans-serif" font-size="13" fill="#0f172a">',
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#ffffff"/>',
        _text(LEFT, 24, "Partitions without an owner", size=15),
        *_legend(),
        *_acts(deployment.acts, duration_ms),
    ]
    for number, (outcome, panel) in enumerate(zip(outcomes, panels, strict=True)):
        parts += _panel(outcome, panel, TOP + GAP + number * (PANEL + GAP), top)
    parts += [*_axis(duration_ms, height - BOTTOM), "</svg>\n"]
    return "\n".join(parts)


def columns(unowned: Sequence[Span], duration_ms: int, partitions: int, count: int = COLUMNS) -> list[Column]:
    """The shares in `count` equal parts of the time."""
    highest, total_ms = [0] * count, [0.0] * count
    steps = [*unowned_steps(unowned), (duration_ms, 0)]
    for (begin_ms, without), (end_ms, _) in pairwise(steps):
        if not without:
            continue
        first, last = _column(begin_ms, duration_ms, count), _column(end_ms - 1, duration_ms, count)
        for number in range(first, last + 1):
            from_ms, to_ms = number * duration_ms / count, (number + 1) * duration_ms / count
            highest[number] = max(highest[number], without)
            total_ms[number] += without * max(min(to_ms, end_ms) - max(from_ms, begin_ms), 0)
    width_ms = duration_ms / count
    return [
        Column(most / partitions, ms / width_ms / partitions)
        for most, ms in zip(highest, total_ms, strict=True)
    ]


def _column(at_ms: int, duration_ms: int, count: int) -> int:
    return min(max(at_ms, 0) * count // duration_ms, count - 1)


def _panel(outcome: Predicted, panel: Sequence[Column], y: int, top: float) -> Iterator[str]:
    it = outcome.figures
    bottom = y + PANEL
    yield f'<path d="M{LEFT} {bottom}H{WIDTH - RIGHT}" stroke="#cbd5e1"/>'
    yield _area((column.highest for column in panel), y, top, "#93c5fd")
    yield _area((column.mean for column in panel), y, top, "#1d4ed8")
    yield _text(LEFT, y - 8, outcome.setting.name, weight=600)
    summary = (
        f"{it.unowned_share:.3%} of all time, {it.moves:.0f} moves, "
        f"longest pause {it.partition_longest_ms / 1000:.3g} s"
    )
    yield _text(WIDTH - RIGHT, y - 8, summary, anchor="end", fill="#475569")
    yield _text(LEFT - 6, y + 10, f"{top:.0%}", anchor="end", fill="#475569")
    yield _text(LEFT - 6, bottom, "0", anchor="end", fill="#475569")


def _area(shares: Iterable[float], y: int, top: float, fill: str) -> str:
    """A stepped area. Equal neighbours share one line."""
    bottom, last, path = y + PANEL, 0.0, [f"M{LEFT} {y + PANEL}"]
    for number, share in enumerate(shares):
        if share != last:
            path.append(f"H{LEFT + number}V{bottom - PANEL * share / top:.5g}")
            last = share
    path.append(f"H{LEFT + COLUMNS}V{bottom}Z")
    return f'<path d="{"".join(path)}" fill="{fill}"/>'


def _acts(acts: Iterable[Act], duration_ms: int) -> Iterator[str]:
    """A mark for each thing that is done, over all panels."""
    for act in acts:
        if act.at_ms < duration_ms:
            x = LEFT + COLUMNS * act.at_ms / duration_ms
            title = f"member {act.slot} {NAMES[act.kind]} after {act.at_ms / 1000:g} s"
            yield (
                f'<path d="M{x:.1f} {TOP - 8}v12" stroke="{COLOURS[act.kind]}" stroke-width="1.5">'
                f"<title>{escape(title)}</title></path>"
            )


def _legend() -> Iterator[str]:
    """What the colours mean, from right to left."""
    x = WIDTH - RIGHT
    acts = ((COLOURS[kind], f"a member {NAMES[kind]}") for kind in Kind)
    marks = [*acts, ("#1d4ed8", "mean"), ("#93c5fd", "highest")]
    for colour, text in marks:
        yield _text(x, 24, text, anchor="end", fill="#475569")
        x -= LETTER * len(text) + 18
        yield f'<rect x="{x}" y="14" width="10" height="10" fill="{colour}"/>'
        x -= 12


def _axis(duration_ms: int, y: int) -> Iterator[str]:
    unit_ms, unit = next(each for each in UNITS_MS if duration_ms >= 2 * each[0] or each[0] == 1)
    units = duration_ms / unit_ms
    step = next((step for step in STEPS if units / step <= MOST_TICKS), STEPS[-1])
    for number in range(0, int(units) + 1, step):
        x = LEFT + COLUMNS * number / units
        yield f'<path d="M{x:.1f} {TOP + GAP}V{y - 4}" stroke="#e2e8f0" stroke-dasharray="2 4"/>'
        yield _text(x, y + 14, f"{number} {unit}" if number else "0", anchor="middle", fill="#475569")


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 13,
    weight: int = 400,
    anchor: str = "start",
    fill: str = "#0f172a",
) -> str:
    return (
        f'<text x="{x:.5g}" y="{y}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="{fill}">{escape(text)}</text>'
    )
