"""Schedules that Hypothesis draws can be played, and become small."""

from __future__ import annotations

import pytest
from hypothesis import Phase, find, given, settings

from kshim.testing import Schedule, schedules
from kshim.torture.faults import FAULTS, Needs
from kshim.torture.schedule import Event, impossible

ALL = Needs.BROKERS | Needs.NO_ORDER | Needs.GROUP


@settings(max_examples=50, deadline=None)
@given(schedules(seconds=5, instances=2))
def test_every_schedule_can_be_played(schedule: Schedule) -> None:
    assert list(impossible(schedule, ALL, 3, 15)) == []
    assert (schedule.instances, schedule.duration_ms) == (2, 5000)
    assert 1 <= len(schedule.events) <= 7
    assert list(schedule.events) == sorted(schedule.events)


def test_a_schedule_becomes_small() -> None:
    def fails(schedule: Schedule) -> bool:
        return any(event.fault == "kill" and event.instance == 2 for event in schedule.events)

    smallest = find(schedules(seconds=10), fails)
    shortest_ms, _ = FAULTS["kill"].lasts_ms
    assert smallest.events == (Event(0, "kill", 2, shortest_ms, 0),)


def test_only_named_faults_are_drawn() -> None:
    with pytest.raises(ValueError, match="no fault is called 'flod'"):
        schedules(faults=["flod"])
    any_will_do = settings(phases=[Phase.generate])
    chosen = find(
        schedules(faults=["freeze", "leader"]), lambda drawn: len(drawn.events) > 3, settings=any_will_do
    )
    assert {event.fault for event in chosen.events} <= {"freeze", "leader"}
