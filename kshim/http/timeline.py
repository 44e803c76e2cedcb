"""The last rebalances of a group as a drawing: each member is a row, and its partitions are bars over time.

A rebalance takes milliseconds, and hours may lie between two. So all rebalances have one width, within which
time runs evenly, and all calm times between rebalances have another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kshim.coordination.groups.rebalance_record import Who
from kshim.http.cut import MOST_PARTITIONS
from kshim.http.html import Html, duration, joined, tag
from kshim.recorder.naming import short_names
from kshim.recorder.shown import Assignment, ShownMember, ShownPart, ShownRebalance

MOST_REBALANCES = 12
MOST_ROWS = 20
MOST_LANES = 8
"""Most bars of a member. If it has more partitions, one bar stands for all of them."""
BAND, CALM, LEAD = 150, 90, 60
"""Widths of a rebalance, of the calm time behind it, and of the time before the first rebalance."""
TOP, LANE, ROW = 42, 7, 26
COLOURS = 8

Partition = tuple[str, int]


class Band(NamedTuple):
    """The column of one rebalance."""

    rebalance: ShownRebalance
    x: float

    def at(self, ms: int) -> float:
        """The x coordinate of a moment of the rebalance."""
        it = self.rebalance
        took_ms = it["ended_ms"] - it["began_ms"]
        share = (ms - it["began_ms"]) / took_ms if took_ms > 0 else 0.0
        return self.x + BAND * min(1.0, max(0.0, share))

    @property
    def end(self) -> float:
        return self.x + BAND


class Row(NamedTuple):
    """The row of one member."""

    member_id: str
    name: str
    lanes: Sequence[Partition]
    """The partitions with a bar each; empty if one bar stands for all partitions."""
    y: int
    height: int


def timeline(group_id: str, rebalances: Sequence[ShownRebalance], now_ms: int) -> Html | None:
    """The drawing; None if there is nothing to draw."""
    shown = rebalances[-MOST_REBALANCES:]
    bands = [Band(each, LEAD + number * (BAND + CALM)) for number, each in enumerate(shown)]
    rows, hidden = _rows(shown)
    if not rows:
        return None
    width, height = int(bands[-1].end) + CALM, rows[-1].y + rows[-1].height + 4
    colours = {each: number % COLOURS for number, each in enumerate(_partitions(shown))}
    drawing = tag(
        "svg",
        tag("title", f"The last {len(shown)} rebalances of {group_id}", id="timeline-title"),
        _hatching(),
        *_stripes(rows, width),
        *(part for band in bands for part in _frame(band, height)),
        *_calms(bands, now_ms),
        *(part for row in rows for part in _bars(row, bands, colours)),
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="group",
        aria_labelledby="timeline-title",
    )
    names = (
        tag("svg", _label(row), x=0, y=row.y, width="100%", height=row.height, overflow="hidden")
        for row in rows
    )
    labels = tag("svg", *names, class_="names", height=height, width="100%", aria_hidden="true")
    more = f"{hidden} more members are not drawn." if hidden else None
    return joined(
        (
            tag(
                "div",
                tag("div", labels, class_="labels"),
                tag("div", drawing, class_="scroll", tabindex=0, role="region", aria_label="Timeline"),
                class_="timeline",
            ),
            tag("p", more, class_="none") if more else None,
            LEGEND,
        )
    )


def _legend() -> Html:
    marks = {
        "holds": "has a partition",
        "waits": "waits for the others, or for its assignment",
        "notified": "learns of the rebalance",
        "gone": "is gone",
    }
    return tag(
        "ul",
        *(
            tag("li", tag("i", class_=f"mark {name}", aria_hidden="true"), text)
            for name, text in marks.items()
        ),
        class_="legend",
    )


LEGEND = _legend()


def held(assignment: Assignment) -> set[Partition]:
    """The partitions of an assignment. Bytes that only clients can read count as one, numbered -1."""
    if isinstance(assignment, str):
        return {("assigned", -1)} if assignment else set()
    return {(topic, partition) for topic, partitions in assignment.items() for partition in partitions}


def named(partition: Partition) -> str:
    """A partition's name, such as "orders-0"."""
    topic, number = partition
    return f"{topic}-{number}" if number >= 0 else topic


def anchor(rebalance: ShownRebalance) -> str:
    """The id of the HTML element that describes a rebalance."""
    return f"r{rebalance['generation']}-{rebalance['began_ms']}"


def _partitions(shown: Iterable[ShownRebalance]) -> list[Partition]:
    members = (member for each in shown for member in each["members"])
    return sorted({found for member in members for found in held(member["before"]) | held(member["after"])})


def _rows(shown: Sequence[ShownRebalance]) -> tuple[list[Row], int]:
    """Return the rows, by name, and how many members have none.

    If too many members took part, the rows are those of the latest rebalances' members.
    """
    known: dict[str, ShownPart] = {}
    lanes: dict[str, set[Partition]] = {}
    for member in (member for each in reversed(shown) for member in each["members"]):
        known.setdefault(member["member_id"], member)
        lanes.setdefault(member["member_id"], set()).update(held(member["before"]), held(member["after"]))
    names = names_of(known.values())
    rows: list[Row] = []
    y = TOP
    for member_id in sorted(list(known)[:MOST_ROWS], key=lambda member_id: names[member_id]):
        own = sorted(lanes[member_id])
        drawn = own if len(own) <= MOST_LANES else []
        height = max(ROW, LANE * len(drawn) + 8)
        rows.append(Row(member_id, names[member_id], drawn, y, height))
        y += height
    more = max(each.get("more_members", 0) for each in shown) if shown else 0
    return rows, max(0, len(known) - MOST_ROWS) + more


def names_of(members: Iterable[ShownMember]) -> Mapping[str, str]:
    """Short names by member id."""
    return short_names(
        Who(each["member_id"], each["client_id"], each["host"], each["instance_id"]) for each in members
    )


def _label(row: Row) -> Html:
    text = tag("text", row.name, x="0", y=row.height / 2, dominant_baseline="central", class_="name")
    return joined((tag("title", row.member_id), text))


def _hatching() -> Html:
    line = tag("path", d="M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2", class_="hatch")
    pattern = tag("pattern", line, id="waits", width=6, height=6, patternUnits="userSpaceOnUse")
    return tag("defs", pattern)


def _stripes(rows: Sequence[Row], width: int) -> Iterator[Html]:
    for number, row in enumerate(rows):
        if number % 2:
            yield tag("rect", x=0, y=row.y, width=width, height=row.height, class_="stripe")


def _frame(band: Band, height: int) -> Iterator[Html]:
    """The frame of a rebalance's column: the generation, which links to the description, and the duration."""
    it = band.rebalance
    unit = "epoch" if it.get("is_of_consumers") else "generation"
    took = duration(it["ended_ms"] - it["began_ms"])
    yield tag("rect", x=band.x, y=TOP, width=BAND, height=height - TOP - 4, class_="band")
    middle = band.x + BAND / 2
    yield tag(
        "a",
        tag("text", f"{unit} {it['generation']}", x=middle, y=14, class_="when", text_anchor="middle"),
        tag("text", took, x=middle, y=31, class_="took", text_anchor="middle"),
        href=f"#{anchor(it)}",
        aria_label=f"{unit.capitalize()} {it['generation']}, after {took}, because {it['cause']}",
    )


def _calms(bands: Sequence[Band], now_ms: int) -> Iterator[Html]:
    """How long the group was calm after each rebalance."""
    following = [band.rebalance["began_ms"] for band in bands[1:]]
    for band, until_ms in zip(bands, [*following, now_ms], strict=True):
        calm_ms = max(0, until_ms - band.rebalance["ended_ms"])
        at = band.end + CALM / 2
        yield tag("text", duration(calm_ms), x=at, y=31, class_="calm", text_anchor="middle")


def _bars(row: Row, bands: Sequence[Band], colours: Mapping[Partition, int]) -> Iterator[Html]:
    for number, band in enumerate(bands):
        member = next((m for m in band.rebalance["members"] if m["member_id"] == row.member_id), None)
        if member is None:
            continue
        before = dict.fromkeys(held(member["before"]), (band.x - (LEAD if not number else 0), band.x))
        yield from _waits(row, band, member)
        yield from _held(row, band, member, before, colours)
        yield from _marks(row, band, member)


def _waits(row: Row, band: Band, member: ShownPart) -> Iterator[Html]:
    if member["joined_ms"] is None:
        return
    until_ms = member["assigned_ms"] or member["gone_ms"] or band.rebalance["ended_ms"]
    x, end = band.at(member["joined_ms"]), band.at(until_ms)
    waited = duration(max(0, until_ms - member["joined_ms"]))
    yield tag(
        "rect",
        tag("title", f"{row.name} waits {waited}"),
        x=_n(x),
        y=row.y + 2,
        width=_n(max(1.0, end - x)),
        height=row.height - 4,
        class_="waits",
    )


def _held(
    row: Row,
    band: Band,
    member: ShownPart,
    before: Mapping[Partition, tuple[float, float]],
    colours: Mapping[Partition, int],
) -> Iterator[Html]:
    """Bars for a member's partitions: the old ones until the member gives them up, the new ones from their
    assignment until the next rebalance.
    """
    assigned_ms = member["assigned_ms"]
    after = set() if assigned_ms is None else held(member["after"])
    begins = 0.0 if assigned_ms is None else band.at(assigned_ms)
    keeps = after & before.keys() if member["paused_ms"] == 0 else set()
    ends_ms = member["gone_ms"] or (assigned_ms if keeps or member["paused_ms"] == 0 else None)
    ends_ms = ends_ms or member["joined_ms"] or band.rebalance["ended_ms"]
    spans: dict[Partition, list[tuple[float, float]]] = {}
    for partition, (x, _) in before.items():
        spans.setdefault(partition, []).append((x, band.end if partition in keeps else band.at(ends_ms)))
    until = band.end + CALM if member["gone"] is None else band.end
    for partition in after:
        start = band.end if partition in keeps else begins
        spans.setdefault(partition, []).append((start, until))
    if not row.lanes and spans:
        yield from _one_bar(row, spans, "more than " if _is_cut(member) else "")
        return
    for partition, of_it in spans.items():
        y = row.y + 4 + LANE * row.lanes.index(partition) + (row.height - 8 - LANE * len(row.lanes)) // 2
        for x, end in of_it:
            yield tag(
                "rect",
                tag("title", f"{row.name} has {named(partition)}"),
                x=_n(x),
                y=y,
                width=_n(max(0.0, end - x)),
                height=LANE - 1,
                class_=f"p{colours[partition]}",
            )


def _is_cut(member: ShownPart) -> bool:
    """True if a member has more partitions than its JSON lists."""
    return max(member.get("before_count", 0), member.get("after_count", 0)) > MOST_PARTITIONS


def _one_bar(
    row: Row, spans: Mapping[Partition, Sequence[tuple[float, float]]], at_least: str
) -> Iterator[Html]:
    counts: dict[tuple[float, float], int] = {}
    for span in (span for of_it in spans.values() for span in of_it):
        counts[span] = counts.get(span, 0) + 1
    for (x, end), count in sorted(counts.items()):
        text = f"{at_least}{count} partitions"
        yield tag(
            "rect",
            tag("title", f"{row.name} has {text}"),
            x=_n(x),
            y=row.y + 5,
            width=_n(max(0.0, end - x)),
            height=row.height - 10,
            class_="p0",
        )


def _marks(row: Row, band: Band, member: ShownPart) -> Iterator[Html]:
    if member["notified_ms"] is not None:
        x = _n(band.at(member["notified_ms"]))
        yield tag("path", d=f"M{x},{row.y + 2} v{row.height - 4}", class_="notified")
    if member["gone"] is not None:
        x = _n(band.at(member["gone_ms"] or band.rebalance["ended_ms"]) - 4)
        y = row.y + row.height // 2 - 4
        title = tag("title", f"{row.name}: {member['gone']}")
        yield tag("path", title, d=f"M{x},{y} l8,8 m0,-8 l-8,8", class_="gone")


def _n(value: float) -> str:
    """A coordinate, rounded to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")
