"""The state of the run after each event, and the ends of its steps."""

import pytest

from kshim.demo.scene import Step
from tests.demo.history import (
    RUN,
    A,
    B,
    P,
    X,
    acknowledged,
    add,
    assigned,
    committed,
    ended,
    event,
    look,
    received,
    revoked,
    scene_of,
    started,
)

SHARED = (
    started(0, A),
    started(0, B),
    assigned(10, A, 1, 0, 1, 2),
    assigned(11, B, 1, 3, 4, 5),
    received(12, A, X),
    received(12, B, X),
    look(20, {A: (0, 1, 2), B: (3, 4, 5)}),
)


def test_the_whole_run():
    scene = scene_of(*RUN)
    assert scene.generation == 2
    assert {name: (each.state, each.partitions) for name, each in scene.named("consumer").items()} == {
        A: ("consuming", (0, 1, 2)),
        B: ("consuming", (3, 4, 5)),
    }
    assert (scene.records("producer"), scene.records("consumer")) == (3, 4)
    assert scene.failure is None


def test_a_member_goes_through_its_states():
    story = [
        (started(1, A), "joining"),
        (revoked(3, A), "joining"),
        (assigned(4, A, 1, 0), "consuming"),
        (revoked(5, A), "rebalancing"),
        (assigned(6, A, 2, 0), "consuming"),
        (event("leaving", 7, A), "leaving"),
        (revoked(8, A), "leaving"),
        (ended(9, A), "left"),
    ]
    scene = scene_of()
    for happened, state in story:
        scene.apply(happened)
        assert scene.workers[A].state == state
    assert scene.living("consumer") == {}
    assert scene.failure is None


def test_a_killed_member_holds_what_the_server_still_gives_it():
    scene = scene_of(started(1, A), assigned(2, A, 1, 0, 1), look(3, {A: (0, 1)}), event("killed", 4, A))
    scene.apply(assigned(3, A, 2, 0, 1, 2))  # its last line arrives late
    assert scene.workers[A].state == "killed"
    assert scene.held_by(A) == (0, 1)
    add(scene, look(5))
    assert scene.held_by(A) == ()


def test_lag_counts_from_the_committed_offset_and_is_never_negative():
    seen = look(1, committed={0: 3, 1: 9}, ends={0: 10, 1: 8, 2: 4})
    assert (seen.lag(), seen.lag([0]), seen.lag([1]), seen.lag([5])) == (11, 7, 0, 0)


def test_a_process_that_ends_unasked_ends_the_run():
    scene = scene_of(started(1, A), ended(2, A, 1, "ImportError: no kafka"))
    assert scene.failure == "consumer-1 ended by itself with status 1: ImportError: no kafka"


def test_the_first_failure_is_the_one_reported():
    scene = scene_of(started(1, A), event("failed", 2, A, error="first"), ended(3, A, 1, "second"))
    assert scene.failure == "consumer-1 failed: first"


@pytest.mark.parametrize(("status", "fails"), [(0, False), (1, True)])
def test_spark_may_end_when_it_has_counted(status, fails):
    scene = scene_of(started(1, "spark"), ended(3, "spark", status, "no Java"))
    assert (scene.failure is not None) is fails


def test_every_living_worker_must_have_been_answered_since():
    scene = scene_of(started(0, P), started(0, A), acknowledged(5, P, X))
    assert scene.is_answered("producer", 1)
    assert not scene.is_answered("producer", 5)
    assert not scene.is_answered("", 1)
    scene.apply(committed(6, A, (0, 1)))
    assert scene.is_answered("", 1)
    add(scene, event("killed", 7, A), acknowledged(9, P, X))
    assert scene.is_answered("", 8)


def test_shared():
    assert scene_of(*SHARED).is_shared()


@pytest.mark.parametrize(
    "events",
    [
        (*SHARED[:3], *SHARED[4:]),
        (*SHARED, revoked(30, A)),
        (*SHARED, assigned(30, A, 2, 0, 1, 2)),
        (*SHARED, event("killed", 30, B)),
        (*SHARED[:5], SHARED[6]),
        SHARED[:6],
        (*SHARED[:6], look(30, {A: (0, 1, 2), B: (3, 4, 5)}, state="PreparingRebalance")),
        (*SHARED[:6], look(30, {A: (0, 1, 2), B: (3,)})),
        (*SHARED, assigned(30, A, 1, 0, 1, 2, 3)),
    ],
    ids=[
        "no assignment",
        "given back",
        "two generations",
        "no owner",
        "no record",
        "never seen",
        "not Stable",
        "the server knows less",
        "two owners",
    ],
)
def test_not_shared_yet(events):
    assert not scene_of(*events).is_shared()


def test_an_old_look_does_not_count():
    scene = scene_of(*SHARED)
    scene.steps.append(Step("the next", 25))
    assert not scene.is_shared()


def test_read():
    scene = scene_of(*SHARED, started(5, P), acknowledged(40, P, X), event("leaving", 30, P))
    add(scene, look(45))
    assert not scene.is_read()
    scene.apply(ended(46, P))
    assert scene.is_read()
    add(scene, look(50, ends={0: 4}, committed={0: 3}))
    assert not scene.is_read()
    add(scene, look(39))
    assert not scene.is_read()


def test_left():
    scene = scene_of(*SHARED, event("killed", 30, B), event("leaving", 40, A), look(40, state="Empty"))
    assert not scene.is_left()
    scene.apply(ended(41, A))
    assert scene.is_left()
    add(scene, look(50))
    assert not scene.is_left()
