"""Draw docs/performance.md from what `python -m benchmarks --json FILE` measured: its table, and a picture.

python -m docs.draw_performance        writes what is between the markers of docs/performance.md anew

Each file of docs/performance/*.json is one run, so the figures of a row are of the same minutes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from statistics import median

from benchmarks.plotting import bars, draw
from benchmarks.processor import Measured
from benchmarks.reporting import number
from benchmarks.running import Series
from benchmarks.servers import APACHE_KAFKA, KSHIM, MEMORY, Side
from docs.draw_coordinator import drawn as _drawn

PAGE = Path(__file__).with_name("performance.md")
RUNS = PAGE.with_suffix("")
PICTURE = RUNS / "flush.svg"
SIDES = {
    "commit": Side(KSHIM, "commit"),
    "os": Side(KSHIM, "os"),
    ":memory:": Side(KSHIM, MEMORY),
    "Apache Kafka": Side(APACHE_KAFKA),
}
"""The columns."""


def loads() -> Iterator[list[Series]]:
    """The series of all servers, by run, case and load."""
    named = {side.name: side.kind for side in SIDES.values()}
    for path in sorted(RUNS.glob("*.json")):
        found = [
            Series(
                each["case"],
                each["load"],
                Side(named[each["server"]], each["flush"] or ""),
                [Measured(**measured) for measured in each["rounds"]],
            )
            for each in json.loads(path.read_text())["measured"]
        ]
        for _, of_load in groupby(found, lambda each: (each.case, each.load)):
            yield list(of_load)


def measured() -> str:
    """A row for each figure of each load: the median of the rounds."""
    rows = [f"| Case | Figure | {' | '.join(SIDES)} |", f"|---|---|{'---|' * len(SIDES)}"]
    for found in loads():
        of_side = {each.side: each for each in found}
        name = " ".join(filter(None, (found[0].case, found[0].load)))
        for figure in found[0].rounds[0].figures:
            middles = (_middle(of_side.get(side), figure) for side in SIDES.values())
            rows.append(f"| {name} | {figure} | {' | '.join(middles)} |")
    return "\n".join(rows)


def _middle(series: Series | None, figure: str) -> str:
    values = [] if series is None else series.values(figure)
    return number(median(values)) if values else ""


def drawn(page: str) -> str:
    """`page` with the table drawn anew."""
    return _drawn(page, (measured,))


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
    draw(PICTURE, bars(list(loads())), SIDES["Apache Kafka"].name)
