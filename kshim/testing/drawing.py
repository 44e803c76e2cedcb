"""Draws schedules of faults with Hypothesis, which makes a schedule that breaks a promise smaller by itself.

@settings(max_examples=10, deadline=None)
@given(schedules(seconds=3))
def test_our_worker_loses_nothing(schedule: Schedule) -> None:
    torture(worker, schedule=schedule)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kshim.testing.arguments import checked
from kshim.torture.choice import named_faults, needs_of
from kshim.torture.faults import FAULTS
from kshim.torture.promises import Judged, Output, Promise
from kshim.torture.schedule import CHOICES, EVENTS_PER_S, Event, Schedule

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["Schedule", "schedules"]

BROKERS = 3


@checked
def schedules(
    *, seconds: float = 10, instances: int = 3, faults: Sequence[str] | None = None
) -> SearchStrategy[Schedule]:
    """A strategy for schedules that last so many seconds.

    faults: the names of some, as `kshim torture --list` prints them; None for all that fit an at-least-once
    program in a group. Needs Hypothesis.
    """
    from hypothesis import strategies

    any_program = Judged(Promise.AT_LEAST_ONCE, Output.REPORT)
    has = needs_of(any_program, BROKERS, has_group=True)
    names = named_faults(None if faults is None else ",".join(faults), any_program, has)
    duration_ms = round(seconds * 1000)

    def event(name: str) -> SearchStrategy[Event]:
        fault = FAULTS[name]
        struck = strategies.integers(1, instances) if fault.is_of_instance else strategies.just(0)
        return strategies.builds(
            Event,
            at_ms=strategies.integers(0, duration_ms),
            fault=strategies.just(name),
            instance=struck,
            lasts_ms=strategies.integers(*fault.lasts_ms),
            choice=strategies.integers(0, CHOICES - 1),
        )

    most = max(1, round(seconds * EVENTS_PER_S))
    events = strategies.lists(strategies.sampled_from(names).flatmap(event), min_size=1, max_size=most)
    return events.map(lambda drawn: Schedule(0, instances, duration_ms, tuple(sorted(drawn))))
