"""The state of the run after each event."""

from kshim.demo.events import Counted, Failed, GroupUnseen
from tests.demo.history import (
    RUN,
    A,
    B,
    assigned,
    exited,
    joining,
    killed,
    ready,
    revoked,
    scene_of,
    seen,
    started,
    stopping,
)


def test_the_whole_run():
    scene = scene_of(*RUN)
    assert scene.server == "ready"
    assert scene.address == "127.0.0.1:9092"
    assert scene.generation == 3
    assert {name: (m.state, m.partitions) for name, m in scene.members.items()} == {
        A: ("consuming", (0, 1, 2, 3)),
        B: ("killed", (2, 3)),
    }
    assert (scene.acknowledged, scene.received) == (4, 4)
    assert scene.failure is None


def test_a_member_goes_through_its_states():
    story = [
        (started(1, A), "starting"),
        (joining(2, A), "joining"),
        (revoked(3, A), "joining"),
        (assigned(4, A, 1, 0), "consuming"),
        (revoked(5, A, 0), "rebalancing"),
        (assigned(6, A, 2, 0), "consuming"),
        (stopping(7, A), "leaving"),
        (revoked(8, A, 0), "leaving"),
        (exited(9, A), "left"),
    ]
    scene = scene_of()
    for event, state in story:
        scene.apply(event)
        assert scene.members[A].state == state
    assert scene.living == {}
    assert scene.failure is None


def test_a_killed_member_holds_what_the_server_still_gives_it():
    scene = scene_of(
        started(1, A), assigned(2, A, 1, 0, 1), seen(3, {A: (0, 1)}, ends=((0, 5), (1, 7))), killed(4, A)
    )
    assert scene.held_by(A) == (0, 1)
    assert scene.lag_of(A) == 12
    scene.apply(seen(5, {}))
    assert scene.held_by(A) == ()


def test_lag_counts_from_the_committed_offset_and_is_never_negative():
    scene = scene_of(seen(1, committed=((0, 3), (1, 9)), ends=((0, 10), (1, 8), (2, 4))))
    assert scene.lag == {0: 7, 1: 0, 2: 4}


def test_most_lag_is_remembered():
    scene = scene_of(started(1, A), assigned(2, A, 1, 0), seen(3, {A: (0,)}, ends=((0, 50),)))
    scene.apply(seen(4, {A: (0,)}, committed=((0, 50),), ends=((0, 50),)))
    assert (scene.most_lag, scene.lag_of(A)) == (50, 0)


def test_the_server_out_of_reach():
    scene = scene_of(ready(1), seen(2), GroupUnseen(name="watcher", at_ms=3, error="refused"))
    assert not scene.reachable
    scene.apply(seen(4))
    assert scene.reachable


def test_a_process_that_ends_unasked_ends_the_run():
    scene = scene_of(started(1, A), exited(2, A, 1, "ImportError: no kafka"))
    assert scene.failure == "consumer-1 ended by itself with status 1: ImportError: no kafka"


def test_the_restarted_server_may_not_end_unasked_either():
    scene = scene_of(started(1, "server"), killed(2, "server"), exited(3, "server", -9), started(4, "server"))
    assert scene.failure is None
    scene.apply(exited(5, "server", 2, "port in use"))
    assert scene.failure == "server ended by itself with status 2: port in use"


def test_the_first_failure_is_the_one_told():
    scene = scene_of(started(1, A), Failed(name=A, at_ms=2, error="first"), exited(3, A, 1, "second"))
    assert scene.failure == "consumer-1 failed: first"


def test_spark_may_end_when_it_has_counted():
    scene = scene_of(
        started(1, "spark"), Counted(name="spark", at_ms=2, records=3, values=3), exited(3, "spark")
    )
    assert scene.failure is None
    assert scene.counted is not None
