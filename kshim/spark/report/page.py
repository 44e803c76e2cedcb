"""The report as one HTML page that needs no other file, no network and no script, and fits on a telephone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from typing import Final

from kshim.spark.report.plots import area, bars, plot, ticks
from kshim.spark.report.values import (
    KINDS,
    MOST_ROWS,
    Behind,
    Flapping,
    Group,
    Mark,
    Rebalance,
    Report,
    Unrevoked,
)

DAY_MS: Final = 24 * 3600 * 1000
_LEGEND: Final = {
    "joined": "a member joined",
    "left": "a member left",
    "lost": "a member was not heard of in time",
    "topic": "a topic changed",
    "other": "another cause",
}
_NUMBER: Final = "number"


def html(report: Report) -> str:
    """The whole page."""
    title = f"Consumer groups of {report.bootstrap}"
    sections = (_head(title, report), _attention(report), _groups(report), _rebalances(report), _lag(report))
    css = files("kshim.spark.report").joinpath("page.css").read_text()
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{css}</style>\n</head>\n<body>\n"
        + "\n".join(sections)
        + "\n</body>\n</html>\n"
    )


# ---- the head, and what is wrong


def _head(title: str, report: Report) -> str:
    steps = report.steps
    tiles = (
        ("groups", report.group_count, False),
        ("commits", report.commits, False),
        ("rebalances", report.rebalances, False),
        ("stuck partitions", len(report.stuck), bool(report.stuck)),
        ("flapping groups", len({row.group for row in report.flapping}), bool(report.flapping)),
    )
    drawn = "".join(
        f'<div class="tile{" wrong" if wrong else ""}"><b>{count:,}</b>{name}</div>'
        for name, count, wrong in tiles
    )
    return (
        f'<h1>{escape(title)}</h1>\n<p class="quiet">{_time(steps.began_ms)} to {_time(steps.ended_ms)} UTC, '
        f"{_lasting(steps.ended_ms - steps.began_ms)}; written by <code>kshim pipeline report</code></p>\n"
        f'<div class="tiles">{drawn}</div>'
    )


def _attention(report: Report) -> str:
    worst: dict[str, Flapping] = {}
    for row in report.flapping[:MOST_ROWS]:
        worst.setdefault(row.group, row)
    found = [
        *_stuck(report.stuck[:MOST_ROWS]),
        *_more(report.stuck, "partitions are stuck", "stuck"),
        *map(_unrevoked, report.unrevoked[:MOST_ROWS]),
        *_more(report.unrevoked, "members do not give up partitions", "unrevoked"),
        *map(_flapping, worst.values()),
        *_more(report.flapping, "windows have too many rebalances", "flapping"),
        *_beyond(report.behind),
    ]
    asked = report.asked
    meant = (
        f"Stuck: records to read, and no progress for {_lasting(asked.stuck_for_s * 1000)} or longer. "
        f"Flapping: {asked.at_least} rebalances or more within {escape(asked.within)}."
    )
    if not found:
        body = "<p>No group is stuck, and none is flapping.</p>"
    else:
        body = f'<ul class="attention">{"".join(f"<li>{line}</li>" for line in found)}</ul>'
    return f'<h2>What needs attention</h2>\n{body}\n<p class="quiet">{meant}</p>'


def _more(rows: Sequence[object], what: str, question: str) -> list[str]:
    """A line if there are more rows than the page shows."""
    if len(rows) <= MOST_ROWS:
        return []
    return [
        f"More than {MOST_ROWS} {what}; these are the worst. "
        f"<code>kshim pipeline {question} --out parquet:DIR</code> writes all."
    ]


def _stuck(rows: Sequence[Behind]) -> list[str]:
    """One line for each group and topic with stuck partitions."""
    together: dict[tuple[str, str], list[Behind]] = {}
    for row in rows:
        together.setdefault((row.group, row.topic), []).append(row)
    return [_stuck_in(group, topic, found) for (group, topic), found in together.items()]


def _stuck_in(group: str, topic: str, rows: Sequence[Behind]) -> str:
    partitions = ", ".join(str(row.partition) for row in sorted(rows, key=lambda row: row.partition))
    return (
        f'<b>{escape(group)}</b> <span class="wrong">is stuck</span> in {escape(topic)}, '
        f"partition{'s' if len(rows) > 1 else ''} {partitions}, for {'up to ' if len(rows) > 1 else ''}"
        f"{_lasting(max(row.stuck_seconds or 0 for row in rows) * 1000)}, with "
        f"{_count(sum(row.lag or 0 for row in rows), 'record')} to read."
    )


def _unrevoked(row: Unrevoked) -> str:
    """A line about a member that holds a rebalance up."""
    return (
        f'<b>{escape(row.group)}</b> <span class="wrong">waits</span> for {escape(row.client or "-")} '
        f"to give up {escape(', '.join(row.partitions))}, for {_lasting(row.waiting_seconds * 1000)}; "
        f"the group removes it after {_lasting(row.rebalance_timeout_ms)}."
    )


def _flapping(row: Flapping) -> str:
    who = f" {escape(row.client)} came or went most often." if row.client else ""
    why = f" Most often, {escape(row.cause)}." if row.cause else ""
    return (
        f'<b>{escape(row.group)}</b> <span class="wrong">is flapping</span>: {row.rebalances:,} rebalances '
        f"from {_time(row.began_ms)} to {_time(row.ended_ms)} UTC.{who}{why}"
    )


def _beyond(behind: Iterable[Behind]) -> list[str]:
    return [
        f"<b>{escape(row.group)}</b> committed offset {row.offset:,} of {escape(row.topic)}-{row.partition}, "
        f"which ends at {row.end_offset:,}: was the topic created anew?"
        for row in behind
        if row.beyond_end
    ]


# ---- groups over time


def _groups(report: Report) -> str:
    rest = report.group_count - len(report.groups)
    only = (
        f" The {len(report.groups)} groups with the most lag or rebalances; {rest} others are not drawn."
        if rest > 0
        else ""
    )
    panels = "\n".join(_panel(group, report) for group in report.groups) or "<p>No group was there.</p>"
    return (
        '<h2>Lag and commits over time</h2>\n<p class="quiet">Each group has a scale of its own. '
        f'A dashed line is a rebalance.{only}</p>\n<div class="groups">\n{panels}\n</div>'
    )


def _panel(group: Group, report: Report) -> str:
    steps = report.steps
    most_lag, most_commits = (max(values.values(), default=0) for values in (group.lag, group.commits))
    now = group.lag.get(steps.number - 1)
    per_s = 1000 / steps.width_ms
    rebalanced = _by_step(group.marks)

    def tip(step: int) -> str:
        lag = group.lag.get(step)
        parts = (
            None if lag is None else f"lag {lag:,}",
            f"{commits / steps.width_ms * 1000:,.2f} commits/s"
            if (commits := group.commits.get(step))
            else None,
            _count(rebalanced[step], "rebalance") if step in rebalanced else None,
        )
        said = ", ".join(filter(None, parts))
        return said and f"{_time(steps.began_ms + step * steps.width_ms)}: {said}"

    lag = plot(
        area(group.lag, most_lag, steps.number),
        ticks(group.marks),
        steps=steps.number,
        label=f"lag of {group.name}, at most {most_lag:,} records",
        tips=tip,
        kind="lag",
    )
    commits = plot(
        bars(group.commits, most_commits),
        steps=steps.number,
        label=f"commits of {group.name}, at most {most_commits * per_s:,.2f} a second",
        tips=tip,
        kind="low",
    )
    return (
        f'<article class="group"><h3>{escape(group.name)}</h3>\n'
        f"<figure><figcaption><span>lag {'-' if now is None else f'{now:,}'}</span>"
        f"<span>at most {most_lag:,} records</span></figcaption>{lag}</figure>\n"
        f"<figure><figcaption><span>{_count(sum(group.commits.values()), 'commit')}, "
        f"{_count(sum(rebalanced.values()), 'rebalance')}</span>"
        f"<span>at most {most_commits * per_s:,.2f} a second</span></figcaption>{commits}</figure>\n"
        f"{_axis(report)}</article>"
    )


def _axis(report: Report) -> str:
    steps = report.steps
    form = "%H:%M:%S" if steps.ended_ms - steps.began_ms < DAY_MS else "%m-%d %H:%M"
    times = (steps.began_ms, (steps.began_ms + steps.ended_ms) / 2, steps.ended_ms)
    return f'<div class="axis">{"".join(f"<span>{_time(at, form)}</span>" for at in times)}</div>'


def _by_step(marks: Iterable[Mark]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for mark in marks:
        counts[mark.step] = counts.get(mark.step, 0) + mark.times
    return counts


# ---- rebalances


def _rebalances(report: Report) -> str:
    legend = "".join(
        f'<span><i style="background: var(--{kind})"></i>{_LEGEND[kind]}</span>' for kind in KINDS
    )
    drawn = "\n".join(_lane(group, report) for group in report.groups if group.marks)
    if not drawn:
        return "<h2>Rebalances</h2>\n<p>No group rebalanced.</p>"
    lanes = (
        f'<div class="lanes"><div class="legend">{legend}</div>\n{drawn}\n'
        f'<div class="lane-row"><span></span>{_axis(report)}<span></span></div></div>'
    )
    return f"<h2>Rebalances</h2>\n{lanes}\n{_causes(report)}\n{_latest(report)}"


def _lane(group: Group, report: Report) -> str:
    steps = report.steps
    said: dict[int, list[str]] = {}
    for mark in group.marks:
        said.setdefault(mark.step, []).append(f"{mark.times} × {_LEGEND[mark.kind]}")

    def tip(step: int) -> str:
        at = _time(steps.began_ms + step * steps.width_ms)
        return f"{at}: {', '.join(said[step])}" if step in said else ""

    total = sum(mark.times for mark in group.marks)
    lane = plot(
        ticks(group.marks),
        steps=steps.number,
        label=f"{total} rebalances of {group.name}",
        tips=tip,
        kind="lane",
    )
    name = escape(group.name)
    return f'<div class="lane-row"><span title="{name}">{name}</span>{lane}<span>{total:,}</span></div>'


def _causes(report: Report) -> str:
    if not report.causes:
        return ""
    rows = [(escape(cause), f"{times:,}") for cause, times in report.causes]
    return "<h3>Causes</h3>\n" + _table((("cause", ""), ("rebalances", _NUMBER)), rows)


def _latest(report: Report) -> str:
    known = bool(report.causes)
    titles = [("began (UTC)", "time"), ("group", ""), ("generation", _NUMBER), ("members", _NUMBER)]
    titles += [("took", _NUMBER), ("why", "")] if known else [("came", ""), ("left", "")]
    rows = [_rebalance(row, known) for row in report.latest]
    shown = "" if len(rows) == report.rebalances else f", {len(rows)} of {report.rebalances:,}"
    return f"<h3>The latest{shown}</h3>\n{_table(titles, rows)}"


def _rebalance(row: Rebalance, known: bool) -> list[str]:
    start = [_time(row.began_ms), escape(row.group), f"{row.generation:,}", f"{row.members:,}"]
    if not known:
        return [*start, *(escape(", ".join(clients)) or "-" for clients in (row.joined, row.left))]
    return [*start, "-" if row.took_ms is None else _lasting(row.took_ms), _why(row)]


def _why(row: Rebalance) -> str:
    who = f": {row.caused_by}" if row.caused_by else ""
    said = f" ({row.reason})" if row.reason else ""
    moved = f"; {_count(row.moved, 'partition')} moved" if row.moved else ""
    unowned = f", up to {_lasting(row.unowned_ms)} without an owner" if row.moved and row.unowned_ms else ""
    cause = escape(f"{row.cause or 'unknown'}{who}{said}{moved}{unowned}")
    if not row.story:
        return cause
    story = "".join(f"<li>{escape(sentence)}</li>" for sentence in row.story)
    return f"<details><summary>{cause}</summary><ol>{story}</ol></details>"


# ---- lag now


def _lag(report: Report) -> str:
    titles = (
        *(("group", ""), ("topic", ""), ("partition", _NUMBER), ("offset", _NUMBER), ("end", _NUMBER)),
        *(("lag", _NUMBER), ("behind", _NUMBER), ("stuck for", _NUMBER)),
    )
    rows = [
        [
            *(escape(row.group), escape(row.topic), str(row.partition), f"{row.offset:,}"),
            *("-" if number is None else f"{number:,}" for number in (row.end_offset, row.lag)),
            *("-" if s is None else _lasting(s * 1000) for s in (row.lag_seconds, row.stuck_seconds)),
        ]
        for row in report.behind[:MOST_ROWS]
    ]
    more = "".join(
        f"<p>{line}</p>" for line in _more(report.behind, "partitions have committed offsets", "lag")
    )
    return f"<h2>Lag when this was written</h2>\n{_table(titles, rows)}{more}"


# ---- words


def _table(titles: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> str:
    """A table. titles: the title and the CSS class of each column."""
    kinds = [f' class="{kind}"' if kind else "" for _, kind in titles]
    head = "".join(f"<th{kind}>{name}</th>" for (name, _), kind in zip(titles, kinds, strict=True))
    body = "\n".join(
        f"<tr>{''.join(f'<td{kind}>{cell}</td>' for cell, kind in zip(row, kinds, strict=True))}</tr>"
        for row in rows
    )
    return (
        f'<div class="table"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>'
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _time(at_ms: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime(form)


def _lasting(ms: float) -> str:
    """A duration, in the largest unit that fits."""
    for unit_ms, unit in ((DAY_MS, "days"), (3600_000, "h"), (60_000, "min"), (1000, "s")):
        if ms >= unit_ms:
            return f"{ms / unit_ms:,.1f} {unit}"
    return f"{ms:,.0f} ms"
