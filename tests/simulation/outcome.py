"""The outcome of one history, in all simulations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """The outcome of the history of a seed."""

    seed: int
    counts: Mapping[str, int]
    """How much has happened, by kind."""
    error: Exception | None
    """None if nothing was wrong."""
    happened: tuple[str, ...]
    """The lines of the history, if they were asked for or something was wrong."""

    def check(self) -> None:
        """Raise AssertionError with the whole history if something was wrong."""
        if self.error is not None:
            raise AssertionError("\n".join((f"seed {self.seed}", *self.happened))) from self.error


def outcome_of(
    seed: int,
    play: Callable[[], None],
    counts: Callable[[], Mapping[str, int]],
    lines: Callable[[], Iterable[str]],
    *,
    tell: bool,
) -> Outcome:
    """Play a history to its end, or until an exception says what is wrong."""
    error: Exception | None = None
    try:
        play()
    except Exception as found:
        error = found
    return Outcome(seed, counts(), error, tuple(lines()) if tell or error else ())


def total(outcomes: Iterable[Outcome], kind: str) -> int:
    """How much of one kind has happened in all these histories."""
    return sum(outcome.counts[kind] for outcome in outcomes)
