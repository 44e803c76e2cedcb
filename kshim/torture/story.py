"""Tells what became of a record: who fetched, processed and committed it, and what went on. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kshim.torture.evidence import Evidence, Happening, Input, Partition, Rebalanced
from kshim.torture.judgement import Finding, breaking
from kshim.torture.promises import MEANING, Anomaly, Judged

MOST_TOLD: Final = 3
"""Findings of each anomaly that the terminal tells; the page tells more."""
AROUND_MS: Final = 1500
"""How long before and after a record's own moments something is told that happened to its instances."""
MOST_LINES: Final = 40


class Moment(NamedTuple):
    """One line of a story."""

    at_ms: float
    text: str
    is_own: bool = True
    """True for what concerns the record itself, False for what happened around it."""


class Told(NamedTuple):
    """A finding and its story."""

    finding: Finding
    title: str
    moments: Sequence[Moment]


def verdict(evidence: Evidence, findings: Sequence[Finding], judged: Judged) -> list[str]:
    """The verdict in one line, and one line for each anomaly that was found, worst first."""
    bad = breaking(findings, judged)
    counts = Counter(finding.anomaly for finding in findings)
    records = sum(not each.is_aborted for each in evidence.inputs)
    promise = f"{judged.promise}{', in order' if judged.in_order else ''}"
    if bad:
        names = ", ".join(f"{counts[a]} {a}" for a in Anomaly if a in judged.breaking and counts[a])
        lines = [f"{promise} is broken: {names} (of {records} records)"]
    else:
        lines = [f"{promise} holds, for {records} records"]
    if unheard := evidence.unheard:
        names = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(unheard))
        lines.append(f"  not judged: {names}, which were added; no instance has them (metadata.max.age.ms)")
    for anomaly in Anomaly:
        if counts[anomaly]:
            allowed = "" if anomaly in judged.breaking else "; the promise allows it"
            lines.append(f"  {counts[anomaly]:5} {anomaly}: {MEANING[anomaly]}{allowed}")
    return lines


def told(
    evidence: Evidence, findings: Sequence[Finding], judged: Judged, most: int = MOST_TOLD
) -> Iterator[Told]:
    """The stories of the findings that break the promise: the first ones of each anomaly."""
    alike: dict[tuple[Anomaly, float, Partition | None], list[Finding]] = {}
    places = {each.number: each.place[:2] for each in evidence.inputs}
    for finding in breaking(findings, judged):
        partition = finding.partition if finding.number is None else places.get(finding.number)
        alike.setdefault((finding.anomaly, finding.at_ms, partition), []).append(finding)
    for anomaly in Anomaly:
        of_it = [group for (kind, *_), group in alike.items() if kind is anomaly]
        for first, *others in of_it[:most]:
            one = tell(evidence, first)
            more = f" (and {len(others)} more at the same moment)" if others else ""
            yield one._replace(title=one.title + more)


def tell(evidence: Evidence, finding: Finding) -> Told:
    """The story of one finding."""
    record = next((each for each in evidence.inputs if each.number == finding.number), None)
    if record is None:
        place = f"{finding.partition[0]}-{finding.partition[1]}" if finding.partition else ""
        title = f"{place or 'output'}: {finding.anomaly}: {finding.text}"
        return Told(finding, title, _around(evidence, finding.at_ms, finding.at_ms, set(), finding.partition))
    title = f"{record.place} (number {record.number}, {record.key}): {finding.anomaly}: {finding.text}"
    own = sorted(_life(evidence, record))
    first_ms, last_ms = own[0].at_ms, own[-1].at_ms
    by = {name for name in _instances(evidence, record) if name}
    moments = sorted(
        [*own, *_around(evidence, first_ms, last_ms, by, record.place[:2])], key=lambda moment: moment.at_ms
    )
    if not _is_processed(evidence, record) and evidence.processed is not None:
        moments.append(Moment(evidence.ended_ms, "the run ended, and nobody had processed it"))
    return Told(finding, title, moments[:MOST_LINES])


def _life(evidence: Evidence, record: Input) -> Iterator[Moment]:
    """The record's own moments."""
    at, offset = record.place[:2], record.place.offset
    aborted = ", in a transaction that was aborted" if record.is_aborted else ""
    yield Moment(record.at_ms, f"produced{aborted}")
    for fetched in evidence.fetched:
        if fetched.partition == at and fetched.first <= offset <= fetched.last:
            yield Moment(
                fetched.at_ms, f"fetched by {fetched.by}, with offsets {fetched.first} to {fetched.last}"
            )
    by = _instances(evidence, record)
    for begun in evidence.begun:
        if begun.partition == at and begun.by in by and begun.at_ms >= record.at_ms:
            where = f"offset {begun.offset}" if begun.offset >= 0 else "no offset"
            yield Moment(begun.at_ms, f"{begun.by} was told to begin at {where}")
    for sign in evidence.processed or ():
        if sign.number == record.number:
            yield Moment(sign.at_ms, f"processed{' by ' if sign.by else ''}{sign.by}")
    told_past = False
    lowest = -1
    for commit in sorted((c for c in evidence.commits if c.partition == at), key=lambda c: c.at_ms):
        text = f"offset {commit.offset} committed by {commit.by or 'somebody'}"
        if commit.error:
            if commit.offset > offset:
                yield Moment(commit.at_ms, f"{text}, refused: {commit.error}")
        elif commit.offset > offset and not told_past:
            told_past = True
            yield Moment(commit.at_ms, text)
        elif told_past and commit.offset <= offset:
            yield Moment(commit.at_ms, f"{text}: it went back")
        lowest = max(lowest, commit.offset)


def _instances(evidence: Evidence, record: Input) -> set[str]:
    """The instances that had to do with a record."""
    at, offset = record.place[:2], record.place.offset
    fetched = {f.by for f in evidence.fetched if f.partition == at and f.first <= offset <= f.last}
    processed = {sign.by for sign in evidence.processed or () if sign.number == record.number}
    return fetched | processed


def _is_processed(evidence: Evidence, record: Input) -> bool:
    return any(sign.number == record.number for sign in evidence.processed or ())


def _around(
    evidence: Evidence, first_ms: float, last_ms: float, by: set[str], partition: Partition | None
) -> list[Moment]:
    """What happened to these instances, the group and the server then, and a little before and after."""
    from_ms, to_ms = first_ms - AROUND_MS, min(last_ms + AROUND_MS, evidence.ended_ms)
    near = [
        Moment(each.at_ms, each.text, is_own=False)
        for each in evidence.happened
        if from_ms <= each.at_ms <= to_ms and _concerns(each, by)
    ]
    near += [
        Moment(each.at_ms, _rebalanced(each, partition), is_own=False)
        for each in evidence.rebalances
        if from_ms <= each.at_ms <= to_ms
    ]
    return near


def _rebalanced(it: Rebalanced, partition: Partition | None) -> str:
    """A rebalance in words, and where the partition went in it."""
    by = f": {', '.join(it.by)}" if it.by else ""
    text = f"the group rebalanced (generation {it.generation}) because {it.cause}{by}"
    if partition is not None and partition in it.moved:
        before, after = it.moved[partition]
        source = f" from {before}" if before else ""
        text += f"; {partition[0]}-{partition[1]} moved{source} to {after}"
    return text


def _concerns(happening: Happening, by: set[str]) -> bool:
    return not happening.instance or not by or happening.instance in by


def lines(one: Told, began_ms: float) -> Iterator[str]:
    """A story as lines for the terminal."""
    yield one.title
    for moment in one.moments:
        mark = " " if moment.is_own else "·"
        yield f"  {(moment.at_ms - began_ms) / 1000:8.3f} s {mark} {moment.text}"
