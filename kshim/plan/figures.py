"""What a plan says of one setting, in figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import NamedTuple

from kshim.plan.ledger import Ledger, Span


class Happened(NamedTuple):
    """What happened to a group in one time, in ms since its begin."""

    rebalances: int
    moves: int
    unowned: tuple[Span, ...]
    """The times in which a partition had no owner."""
    paused: tuple[Span, ...]
    """The times in which a live member had no partition."""


class Figures(NamedTuple):
    """Figures of a time of a group, or of several such times: then counts are means. Durations are in ms."""

    rebalances: float
    """How many generations, or group epochs, began."""
    moves: float
    """How often a partition was taken over by another member."""
    unowned_ms: float
    """The time without an owner of all partitions together: ten partitions for a second are ten seconds."""
    unowned_share: float
    """The same as a share of all partitions' time, from 0 to 1."""
    partition_pauses: float
    """How often a partition lost its owner, and had none for a time."""
    partition_p50_ms: int
    partition_p99_ms: int
    partition_longest_ms: int
    member_pauses: float
    """How often a member had no partition for a time, its starts included."""
    member_p50_ms: int
    member_p99_ms: int


def happened(ledger: Ledger, rebalances: int, begin_ms: int, end_ms: int) -> Happened:
    """What happened in [begin_ms, end_ms]."""
    return Happened(
        rebalances,
        ledger.moves(begin_ms),
        tuple(_since(begin_ms, ledger.unowned(begin_ms, end_ms))),
        tuple(_since(begin_ms, ledger.paused(begin_ms, end_ms))),
    )


def figures(runs: Sequence[Happened], partitions: int, duration_ms: int) -> Figures:
    """The figures of one or more times that lasted as long."""
    pauses = sorted(span.ms for run in runs for span in run.unowned)
    member_pauses = sorted(span.ms for run in runs for span in run.paused)
    count = len(runs)
    return Figures(
        rebalances=sum(run.rebalances for run in runs) / count,
        moves=sum(run.moves for run in runs) / count,
        unowned_ms=sum(pauses) / count,
        unowned_share=sum(pauses) / count / (partitions * duration_ms),
        partition_pauses=len(pauses) / count,
        partition_p50_ms=percentile(pauses, 50),
        partition_p99_ms=percentile(pauses, 99),
        partition_longest_ms=percentile(pauses, 100),
        member_pauses=len(member_pauses) / count,
        member_p50_ms=percentile(member_pauses, 50),
        member_p99_ms=percentile(member_pauses, 99),
    )


def _since(begin_ms: int, spans: Iterable[Span]) -> Iterator[Span]:
    for span in spans:
        yield Span(span.begin_ms - begin_ms, span.end_ms - begin_ms)


def percentile(ordered: Sequence[int], percent: int) -> int:
    """The smallest of the ordered values that at least so many percent of them do not exceed; 0 if there are
    none.
    """
    return ordered[max(ceil(len(ordered) * percent / 100), 1) - 1] if ordered else 0


def unowned_steps(spans: Sequence[Span]) -> list[tuple[int, int]]:
    """How many partitions have no owner: pairs of a time in ms and the number from then on."""
    changes: dict[int, int] = {}
    for span in spans:
        changes[span.begin_ms] = changes.get(span.begin_ms, 0) + 1
        changes[span.end_ms] = changes.get(span.end_ms, 0) - 1
    steps: list[tuple[int, int]] = []
    count = 0
    for at_ms in sorted(changes):
        count += changes[at_ms]
        steps.append((at_ms, count))
    return steps
