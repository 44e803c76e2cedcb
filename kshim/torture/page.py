"""One page about a run: the verdict, a timeline of the instances and the faults, and the stories. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Final

from kshim.http.html import Html, joined, table, tag
from kshim.torture.evidence import Evidence, Partition
from kshim.torture.judgement import Finding, breaking
from kshim.torture.promises import Judged
from kshim.torture.schedule import Schedule
from kshim.torture.story import Told, told, verdict

WIDTH, LEFT, TOP = 1000, 36, 4
LANE, ROW, GAP, FOOT = 7, 30, 6, 20
LINE, LETTER = 14, 6
"""The height of a line of labels, and the width of a letter in it."""
COLOURS = 8
MOST_TOLD: Final = 10
MOST_MARKS: Final = 400
STYLE: Final = """
.timeline svg { width: 100%; height: auto; min-width: 46rem; }
.torture .down { fill: var(--idle-back); }
.torture .bad { stroke: var(--p5); stroke-width: 2; }
.torture .quiet { fill: var(--good-back); }
.around { color: var(--faint); }
pre.command { white-space: pre-wrap; }
"""


class _Scale:
    """From times to coordinates."""

    def __init__(self, evidence: Evidence) -> None:
        self.began_ms = evidence.began_ms
        self.took_ms = max(1.0, evidence.ended_ms - evidence.began_ms)

    def x(self, at_ms: float) -> float:
        share = min(1.0, max(0.0, (at_ms - self.began_ms) / self.took_ms))
        return round(LEFT + share * (WIDTH - 2 * LEFT), 1)


def page(
    evidence: Evidence,
    findings: Sequence[Finding] | None,
    judged: Judged,
    schedule: Schedule,
    command: str,
) -> str:
    """The page as HTML text, which needs no other file. findings: None for a run that was interrupted."""
    first, *others = (
        ["interrupted, so this is no verdict"] if findings is None else verdict(evidence, findings, judged)
    )
    findings = findings or ()
    stories = list(told(evidence, findings, judged, MOST_TOLD))
    title = f"kshim torture: {first}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(files("kshim.http.assets").joinpath("page.css").read_text() + STYLE)),
    )
    body = tag(
        "main",
        tag("h1", first),
        tag("p", tag("code", command)),
        tag("p", f"Seed {schedule.seed}, {schedule.instances} instances; {len(schedule.events)} faults."),
        tag("ul", *(tag("li", line.strip()) for line in others), class_="story") if others else None,
        tag("section", tag("h2", "Timeline"), *_timeline(evidence, breaking(findings, judged), schedule)),
        tag("h2", "Stories") if stories else None,
        *(_story(each, evidence.began_ms) for each in stories),
        tag("h2", "All that happened"),
        _happenings(evidence),
    )
    return f'<!doctype html><html lang="en">{head}<body class="torture">{body}</body></html>\n'


def _story(one: Told, began_ms: float) -> Html:
    items = (
        tag("li", f"{(m.at_ms - began_ms) / 1000:.3f} s: {m.text}", class_=None if m.is_own else "around")
        for m in one.moments
    )
    return tag("article", tag("h3", one.title), tag("ul", *items, class_="story"))


def _happenings(evidence: Evidence) -> Html:
    rows = [
        tag(
            "tr",
            tag("td", f"{(each.at_ms - evidence.began_ms) / 1000:.3f}", class_="number"),
            tag("td", each.instance or "–"),
            tag("td", each.text),
        )
        for each in evidence.happened
    ]
    return table("Seconds after all instances had joined", ("#Time", "Instance", "What happened"), rows)


# ---- the timeline


def _timeline(evidence: Evidence, bad: Sequence[Finding], schedule: Schedule) -> Iterator[Html]:
    """A row for the server, and one for each instance with its partitions as bars."""
    names = _names(evidence, schedule)
    partitions = sorted({p for each in evidence.assigned for p in each.partitions})
    height = max(ROW, LANE * len(partitions) + 10)
    scale = _Scale(evidence)
    labels, first_y = _labelled(evidence, scale)
    rows = {name: first_y + number * (height + GAP) for number, name in enumerate(names)}
    total = first_y + len(names) * (height + GAP) + FOOT
    quiet = scale.x(evidence.quiet_ms)
    drawing = tag(
        "svg",
        tag("title", "What was done to the instances, and which partitions they had", id="timeline-title"),
        _hatching(),
        tag("rect", x=quiet, y=0, width=round(WIDTH - LEFT - quiet, 1), height=total - FOOT, class_="quiet"),
        *_seconds(scale, total),
        *(_row(evidence, name, y, height, partitions, scale) for name, y in rows.items()),
        *labels,
        *_marks(evidence, rows, height, scale),
        *_findings(bad, scale, total),
        viewBox=f"0 0 {WIDTH} {total}",
        role="img",
        aria_labelledby="timeline-title",
    )
    yield tag("div", tag("div", drawing, class_="scroll", tabindex=0), class_="timeline")
    yield tag(
        "p",
        "Above: faults of the server and the group. Below: a row for each instance; bars are its partitions. "
        "Grey: it does not run. Hatched: it stands still, or is slow. Red: breaks the promise. Green: quiet.",
        class_="none",
    )


def _labelled(evidence: Evidence, scale: _Scale) -> tuple[list[Html], int]:
    """The faults of the server and the group, each label in the first line with room; and where these end."""
    ends: list[float] = []
    found = []
    for each in evidence.happened[:MOST_MARKS]:
        if not each.fault or each.instance:
            continue
        x = scale.x(each.at_ms)
        line = next((number for number, end in enumerate(ends) if end < x), len(ends))
        end = x + LETTER * len(each.fault) + 8
        ends[line : line + 1] = [end]
        y = TOP + LINE * line
        text = tag("text", each.fault, x=x + 3, y=y + 10, class_="took")
        mark = tag("path", d=f"M{x},{y} v{LINE - 2}", class_="notified")
        found.append(tag("g", tag("title", each.text), mark, text))
    return found, TOP + LINE * max(1, len(ends)) + GAP


def _hatching() -> Html:
    line = tag("path", d="M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2", class_="hatch")
    return tag("defs", tag("pattern", line, id="waits", width=6, height=6, patternUnits="userSpaceOnUse"))


def _names(evidence: Evidence, schedule: Schedule) -> list[str]:
    known = {each.instance for each in evidence.happened if each.instance}
    known |= {f"c{number}" for number in range(1, schedule.instances + 1)}
    return sorted(known, key=lambda name: (len(name), name))


def _seconds(scale: _Scale, total: float) -> Iterator[Html]:
    step_s = max(1, round(scale.took_ms / 12_000))
    for second in range(0, int(scale.took_ms / 1000) + 1, step_s):
        x = scale.x(scale.began_ms + second * 1000)
        yield tag("text", f"{second} s", x=x, y=total - 4, class_="calm", text_anchor="middle")


def _row(
    evidence: Evidence, name: str, y: float, height: float, lanes: Sequence[Partition], scale: _Scale
) -> Html:
    spans = _held(evidence, name)
    bars = (
        tag(
            "rect",
            tag("title", f"{name} has {partition[0]}-{partition[1]}"),
            x=scale.x(from_ms),
            y=y + 4 + LANE * lanes.index(partition),
            width=round(max(1.0, scale.x(to_ms) - scale.x(from_ms)), 1),
            height=LANE - 1,
            class_=f"p{partition[1] % COLOURS}",
        )
        for partition, from_ms, to_ms in spans
    )
    frame = tag("rect", x=LEFT, y=y, width=WIDTH - 2 * LEFT, height=height, class_="stripe")
    away = (
        tag(
            "rect",
            tag("title", each.text),
            x=scale.x(each.at_ms),
            y=y,
            width=round(scale.x(each.until_ms or each.at_ms) - scale.x(each.at_ms), 1),
            height=height,
            class_="waits" if each.fault in ("freeze", "slow") else "down",
        )
        for each in evidence.happened
        if each.instance == name and each.until_ms is not None and each.fault != "join"
    )
    label = tag("text", name, x=4, y=y + height / 2 + 4, class_="name")
    return joined((frame, *away, *bars, label))


def _held(evidence: Evidence, name: str) -> Iterator[tuple[Partition, float, float]]:
    """The spans in which an instance had a partition: until its next assignment, its end, or another's."""
    mine = sorted((each for each in evidence.assigned if each.by == name), key=lambda each: each.at_ms)
    ends = [h.at_ms for h in evidence.happened if h.instance == name and h.fault in ("kill", "stop")]
    for number, each in enumerate(mine):
        until_ms = mine[number + 1].at_ms if number + 1 < len(mine) else evidence.ended_ms
        until_ms = min([until_ms, *(end for end in ends if end > each.at_ms)])
        for partition in each.partitions:
            others = (
                other.at_ms
                for other in evidence.assigned
                if other.by != name and partition in other.partitions and other.at_ms > each.at_ms
            )
            yield partition, each.at_ms, min([until_ms, *others])


def _marks(evidence: Evidence, rows: Mapping[str, float], height: float, scale: _Scale) -> Iterator[Html]:
    """The faults of the instances."""
    for each in evidence.happened[:MOST_MARKS]:
        if each.fault and each.instance in rows:
            x, y = scale.x(each.at_ms), rows[each.instance]
            middle = y + height / 2 - 4
            cross = tag("path", d=f"M{x - 4},{middle} l8,8 m0,-8 l-8,8", class_="gone")
            line = tag("path", d=f"M{x},{y + 2} v{height - 4}", class_="notified")
            yield tag("g", tag("title", each.text), cross if each.fault == "kill" else line)


def _findings(bad: Sequence[Finding], scale: _Scale, total: float) -> Iterator[Html]:
    for finding in bad[:MOST_MARKS]:
        x = scale.x(finding.at_ms)
        title = tag("title", f"{finding.anomaly}: {finding.text}")
        yield tag("path", title, d=f"M{x},0 V{total - FOOT}", class_="bad", stroke_opacity="0.4")
