"""Makes the traces of a run in a few words: records at offsets of one partition, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kshim.torture.evidence import Assigned, Commit, Evidence, Fetched, Happening, Input, Place, Processed
from kshim.torture.judgement import Finding, judge
from kshim.torture.promises import Anomaly, Judged, Output, Promise

AT = ("in", 0)
LEAST = Judged(Promise.AT_LEAST_ONCE, Output.REPORT)
SOON_MS, LATE_MS = 10.0, 5000.0


def record(number: int, key: str = "k", *, is_aborted: bool = False) -> Input:
    """The record with this number, at this offset, produced at this second."""
    return Input(number, key, Place(*AT, number), number * 1000.0, is_aborted)


def done(
    number: int, at_ms: float = SOON_MS, by: str = "c1", where: tuple[int, int] | None = None
) -> Processed:
    return Processed(number, at_ms, by, where)


def commit(offset: int, at_ms: float = SOON_MS, by: str = "c1", **more: Any) -> Commit:
    return Commit(AT, offset, at_ms, by, **more)


def given(by: str, at_ms: float) -> Assigned:
    return Assigned((AT,), at_ms, by)


def traces(
    records: int | Sequence[Input],
    processed: Sequence[Processed] | None = (),
    commits: Sequence[Commit] = (),
    *,
    committed: int = 0,
    fetched: Sequence[tuple[int, int, float]] = (),
    happened: Sequence[Happening] = (),
    assigned: Sequence[Assigned] = (),
    **more: Any,
) -> Evidence:
    inputs = [record(number) for number in range(records)] if isinstance(records, int) else records
    return Evidence(
        began_ms=0,
        quiet_ms=8000,
        ended_ms=10_000,
        inputs=inputs,
        processed=processed,
        fetched=[Fetched(AT, first, last, at_ms, "c1") for first, last, at_ms in fetched],
        commits=commits,
        assigned=assigned,
        happened=happened,
        committed={AT: committed} if committed else {},
        **more,
    )


def found(evidence: Evidence, judged: Judged = LEAST) -> list[tuple[Anomaly, int | None]]:
    """The anomalies, and the numbers of their records."""
    return [(finding.anomaly, finding.number) for finding in findings(evidence, judged)]


def findings(evidence: Evidence, judged: Judged = LEAST) -> list[Finding]:
    return judge(evidence, judged)
