"""What the steps of a deployment do to the slots."""

from __future__ import annotations

import pytest

from kshim.plan.deployment import (
    STARTS_WITHIN_MS,
    Act,
    Crash,
    Kind,
    NotPossible,
    RollingRestart,
    Scale,
    deployed,
)


def test_a_rolling_restart_is_one_round_over_all_members() -> None:
    acts = deployed(2, [RollingRestart(1_000, 10_000, 3_000)]).acts
    assert acts == (
        Act(1_000, Kind.CLOSE, 0),
        Act(4_000, Kind.START, 0),
        Act(11_000, Kind.CLOSE, 1),
        Act(14_000, Kind.START, 1),
    )


def test_members_are_killed_if_they_are_to_be() -> None:
    acts = deployed(1, [RollingRestart(0, 1, 5, is_killed=True)]).acts
    assert [act.kind for act in acts] == [Kind.CRASH, Kind.START]


def test_scaling_up_starts_new_slots_within_two_seconds() -> None:
    acts = deployed(2, [Scale(5_000, 4)]).acts
    assert [(act.kind, act.slot) for act in sorted(acts, key=lambda act: act.slot)] == [
        (Kind.START, 2),
        (Kind.START, 3),
    ]
    assert all(5_000 <= act.at_ms <= 5_000 + STARTS_WITHIN_MS for act in acts)


def test_scaling_down_closes_the_latest_slots() -> None:
    assert deployed(3, [Scale(5_000, 1)]).acts == (Act(5_000, Kind.CLOSE, 1), Act(5_000, Kind.CLOSE, 2))


def test_a_member_that_has_not_started_yet_is_not_closed() -> None:
    acts = deployed(1, [Scale(0, 50), Scale(1, 1)]).acts
    assert all(acts.count(Act(1, Kind.CLOSE, slot)) <= 1 for slot in range(50))
    started = {act.slot for act in acts if act.kind is Kind.START}
    assert started == {act.slot for act in acts if act.kind is Kind.CLOSE}
    assert all(act.at_ms <= 1 for act in acts)


def test_a_crashed_member_comes_back_or_stays_away() -> None:
    acts = deployed(3, [Crash(10, 1, back_ms=5)]).acts
    assert [(act.at_ms, act.kind) for act in acts] == [(10, Kind.CRASH), (15, Kind.START)]
    assert acts[0].slot == acts[1].slot
    (alone,) = deployed(3, [Crash(10, 1)]).acts
    later = deployed(3, [Crash(10, 1), RollingRestart(20, 1, 1)]).acts
    assert alone.slot not in {act.slot for act in later if act.at_ms >= 20}


def test_a_scaling_counts_the_members_that_a_crash_has_left() -> None:
    with pytest.raises(NotPossible, match="3:5 begins with 3 members, but there are 2"):
        deployed(3, [Crash(1, 1), Scale(2, 5, before=3)])


def test_more_members_than_there_are_cannot_crash() -> None:
    with pytest.raises(NotPossible, match="4 members cannot crash where there are 3"):
        deployed(3, [Crash(1, 4)])


def test_the_seed_decides_who_crashes() -> None:
    steps = [Crash(1, 1)]
    assert deployed(100, steps, 1) == deployed(100, steps, 1)
    assert len({deployed(100, steps, seed) for seed in range(9)}) > 1
