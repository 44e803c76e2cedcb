"""Schedules: the same from the same seed, refused if nobody could survive them, and made smaller."""

from __future__ import annotations

import pytest

from kshim.torture.choice import named_faults, needs_of, schedule_of
from kshim.torture.faults import ABORTED, FAULTS, Needs
from kshim.torture.promises import Judged, Output, Promise
from kshim.torture.schedule import Event, Schedule, WrongSchedule, draw, impossible, read, shrunk, written

ALL = Needs.BROKERS | Needs.NO_ORDER | Needs.GROUP
LEAST = Judged(Promise.AT_LEAST_ONCE, Output.REPORT)
ORDERED = LEAST._replace(in_order=True)


def schedule(*events: Event) -> Schedule:
    return Schedule(7, 3, 10_000, events)


def test_a_seed_is_a_schedule() -> None:
    assert draw(7, 3, 10_000, list(FAULTS)) == draw(7, 3, 10_000, list(FAULTS))
    assert draw(7, 3, 10_000, list(FAULTS)) != draw(8, 3, 10_000, list(FAULTS))


def test_what_is_drawn_can_be_played() -> None:
    for seed in range(200):
        drawn = draw(seed, 3, 10_000, list(FAULTS))
        assert list(impossible(drawn, ALL, 3, 15)) == []
        assert list(drawn.events) == sorted(drawn.events, key=lambda event: event.at_ms)
        assert all(1 <= e.instance <= 3 for e in drawn.events if FAULTS[e.fault].is_of_instance)


def test_five_seeds_strike_with_every_fault() -> None:
    for first in range(0, 100, 5):
        struck = {
            event.fault
            for seed in range(first, first + 5)
            for event in draw(seed, 3, 10_000, list(FAULTS)).events
        }
        assert struck >= {"kill", "stop", "freeze", "rebalance", "commit-lost"}
        assert len(struck) > len(FAULTS) * 0.8


def test_few_faults_come_again_and_again() -> None:
    drawn = draw(1, 2, 10_000, ["kill"])
    assert len(drawn.events) == 14
    assert {event.fault for event in drawn.events} == {"kill"}


@pytest.mark.parametrize(
    ("event", "has", "why"),
    [
        (Event(0, "flood"), ALL, "no fault is called 'flood'"),
        (Event(0, "broker"), ALL & ~Needs.BROKERS, "nobody could reach the group"),
        (Event(0, "partitions"), ALL & ~Needs.NO_ORDER, "no program could keep their order"),
        (Event(0, "rebalance"), ALL & ~Needs.GROUP, "the program joins no group"),
        (Event(-1, "rebalance"), ALL, "a time has to be 0 or more"),
        (Event(9000, "late", lasts_ms=60_000), ALL, "the run is quiet from 10 s on"),
        (Event(0, "kill", 4), ALL, "there is no instance c4; there are 3"),
    ],
)
def test_what_no_program_could_survive(event: Event, has: Needs, why: str) -> None:
    (said,) = impossible(schedule(event), has, 1, 15)
    assert why in said


def test_a_settle_that_is_too_short_for_anybody() -> None:
    (said,) = impossible(schedule(), ALL, 3, 1)
    assert "--settle has to be 2 s or more" in said


def test_a_schedule_is_read_as_it_was_written() -> None:
    drawn = draw(3, 3, 10_000, list(FAULTS))
    assert read(written(drawn)) == drawn
    assert read(written(schedule())) == schedule()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"seed": 1, "instances": 2, "duration_ms": 3, "events": [{"at": 1}]}']
)
def test_other_files_are_no_schedules(text: str) -> None:
    with pytest.raises(WrongSchedule, match="is no schedule"):
        read(text)


def test_numbers_have_to_be_numbers() -> None:
    with pytest.raises(WrongSchedule, match="integers"):
        read(written(schedule(Event(1, "kill", 1))).replace('"at_ms": 1', '"at_ms": "1"'))


def test_shrinking_finds_the_two_events_that_it_takes() -> None:
    drawn = draw(5, 3, 20_000, list(FAULTS))
    needed = {drawn.events[4], drawn.events[17]}
    played = []

    def fails(smaller: Schedule) -> bool:
        played.append(smaller)
        return needed <= set(smaller.events)

    assert set(shrunk(drawn, fails).events) == needed
    assert len(played) < 60


def test_what_fails_without_any_fault_shrinks_to_nothing() -> None:
    assert shrunk(draw(5, 3, 10_000, list(FAULTS)), lambda _: True).events == ()


def test_the_faults_of_a_run_fit_it() -> None:
    assert needs_of(ORDERED, 3, True) == Needs.BROKERS | Needs.GROUP
    assert needs_of(LEAST, 3, False) == Needs.BROKERS | Needs.NO_ORDER
    without = named_faults(None, LEAST, needs_of(LEAST, 3, False))
    assert {"kill", "freeze", "broker"} <= {*without}
    assert not {"expire", "rebalance", "join", "coordinator", "static", "commit-lost"} & {*without}
    assert "partitions" not in named_faults(None, ORDERED, needs_of(ORDERED, 3, True))
    assert "broker" not in named_faults(None, LEAST, needs_of(LEAST, 1, True))
    assert ABORTED not in named_faults(None, LEAST, ALL)
    exactly = Judged(Promise.EXACTLY_ONCE, Output.TOPIC)
    assert ABORTED in named_faults(None, exactly, ALL)


def test_faults_are_chosen_by_name() -> None:
    assert named_faults("kill, join", LEAST, ALL) == ["kill", "join"]
    assert "kill" not in named_faults("-kill", LEAST, ALL)
    with pytest.raises(WrongSchedule, match="no fault is called 'freez'; write one of freeze"):
        named_faults("freez", LEAST, ALL)
    with pytest.raises(WrongSchedule, match="for 1 s or more"):
        schedule_of(1, 3, 999, ["kill"])
    with pytest.raises(WrongSchedule, match="no fault is left"):
        schedule_of(1, 3, 10_000, [])
