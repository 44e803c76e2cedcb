"""Draws how many times as good as the peer kshim was: a bar for the main figure of each load."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from benchmarks.comparing import Spread, ratios, spread
from benchmarks.reporting import peer_of
from benchmarks.running import Series
from benchmarks.servers import MEMORY

FORMATS = (".svg", ".png")
COLOURS = {"commit": "#3b6ea5", "os": "#9dbbd8", "memory": "#c9c9c9"}
TICKS = (1, 2, 5)
BAR_INCHES, MARGIN_INCHES, WIDTH_INCHES = 0.24, 1.3, 9.0

Bar = tuple[str, str, Spread]
"""Its label, kshim's flush.policy, and the ratio."""


def problem(path: Path) -> str:
    """The reason why nothing can be drawn into this file; "" if there is none."""
    if path.suffix not in FORMATS:
        return f"--plot {path}: expected a name that ends in {' or '.join(FORMATS)}"
    if find_spec("matplotlib") is None:
        return "--plot needs matplotlib: pip install '.[benchmarks]'"
    return ""


def bars(all_found: Sequence[Sequence[Series]]) -> list[Bar]:
    """The first figure of each load, for every way to run kshim. Series without a peer have none."""
    made = []
    for found in all_found:
        peer = peer_of(found)
        for ours in found:
            if peer is None or ours is peer:
                continue
            figure = next(iter(ours.rounds[0].figures))
            compared = spread(ratios(figure, ours.values(figure), peer.values(figure)))
            if compared:
                made.append((" ".join(filter(None, (ours.case, ours.load))), ours.side.flush, compared))
    return made


def draw(path: Path, drawn: Sequence[Bar], peer: str) -> None:
    """Write the picture; its format is the file's."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import Patch
    from matplotlib.ticker import LogLocator, NullLocator

    figure, axes = pyplot.subplots(figsize=(WIDTH_INCHES, MARGIN_INCHES + BAR_INCHES * len(drawn)))
    for place, (_, flush, ratio) in enumerate(drawn):
        error = [[ratio.middle - ratio.least], [ratio.most - ratio.middle]]
        colour = COLOURS.get(flush, "#888888")
        axes.barh(place, ratio.middle - 1, left=1, xerr=error, color=colour, ecolor="#444444", capsize=2)
        axes.annotate(
            f"{ratio.middle:.2g}",
            (max(ratio.most, 1), place),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
        )
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=TICKS))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks(range(len(drawn)), [label for label, _, _ in drawn], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"times as good as {peer}")
    shown = [flush for flush in COLOURS if any(flush == each for _, each, _ in drawn)]
    handles = [Patch(color=COLOURS[flush]) for flush in shown]
    if handles:
        axes.legend(
            handles,
            [":memory:" if flush == MEMORY else f"flush.policy={flush}" for flush in shown],
            fontsize=8,
            loc="lower right",
        )
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
