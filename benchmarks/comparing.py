"""Figures of several rounds: their middle, their spread, and how often one side is as good as the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median


@dataclass(frozen=True)
class Spread:
    """The median of some figures, and the range that they are in."""

    middle: float
    least: float
    most: float


def spread(values: Sequence[float]) -> Spread | None:
    """None if there are no values."""
    return Spread(median(values), min(values), max(values)) if values else None


def percentile(values: Sequence[float], percent: float) -> float:
    """The least value that so many percent of all values do not exceed (the nearest rank)."""
    ordered = sorted(values)
    return ordered[max(ceil(len(ordered) * percent / 100), 1) - 1]


def more_is_better(figure: str) -> bool:
    """True for a rate, such as `requests/s`. Of times and of memory, less is better."""
    return figure.endswith("/s")


def ratios(figure: str, ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """kshim's result divided by the peer's, round by round, so that above 1 kshim is better.

    A round in which one of them has no measurable figure has no ratio.
    """
    pairs = [(our, their) for our, their in zip(ours, theirs, strict=False) if our > 0 and their > 0]
    return [our / their if more_is_better(figure) else their / our for our, their in pairs]
