"""The steps of the story: what each waits for, and when it is done."""

import pytest

from kshim.demo.events import Counted, Created
from kshim.demo.scene import Scene
from kshim.demo.story import (
    SPARK_STEP,
    STORY,
    Kill,
    Progress,
    Start,
    Step,
    Stop,
    acknowledged,
    all_left,
    all_read,
    counted,
    down,
    goes_on,
    listed,
    server_ready,
    shared,
    topic_made,
)
from tests.demo import history
from tests.demo.history import (
    A,
    B,
    assigned,
    committed,
    exited,
    killed,
    ready,
    scene_of,
    seen,
    started,
    stopping,
)

READ = (0, 0, "producer-1 0")
SHARED = (
    started(0, A),
    started(0, B),
    assigned(10, A, 1, 0, 1),
    assigned(11, B, 1, 2, 3),
    history.received(12, A, READ),
    history.received(12, B, READ),
    seen(20, {A: (0, 1), B: (2, 3)}),
)


@pytest.mark.parametrize(
    ("items", "words"), [(["a"], "a"), ("ab", "a and b"), ("abc", "a, b and c"), ([], "")]
)
def test_listed(items, words):
    assert listed(items) == words


def test_the_story_kills_only_what_runs_and_stops_all_consumers_and_producers():
    running: set[str] = set()
    for step in STORY:
        match step.action:
            case Start(names):
                assert not running & set(names)
                running |= set(names)
            case Kill(name):
                running.remove(name)
            case Stop(names):
                running -= set(names)
    assert running == {"server", "watcher"}


def test_titles_tell_the_steps_apart():
    titles = [step.title for step in (*STORY, SPARK_STEP)]
    assert len(set(titles)) == len(titles)


def test_the_server_and_the_topic():
    scene = Scene(began_ms=0, partitions=4)
    assert server_ready(scene, 0)
    assert topic_made(scene, 0)
    scene.apply(ready(1))
    scene.apply(Created(name="watcher", at_ms=2, topic="demo", partitions=4))
    assert server_ready(scene, 0) == topic_made(scene, 0) == ""


def test_every_producer_must_have_had_an_acknowledgement_since():
    scene = scene_of(
        started(0, "producer-1"), started(0, "producer-2"), history.acknowledged(5, "producer-1", READ)
    )
    assert acknowledged(scene, 1) == "an acknowledgement for producer-2"
    scene.apply(history.acknowledged(6, "producer-2", READ))
    assert acknowledged(scene, 1) == ""
    assert acknowledged(scene, 5) == "an acknowledgement for producer-1"


def test_shared():
    assert shared(scene_of(*SHARED), 5) == ""


@pytest.mark.parametrize(
    ("events", "missing"),
    [
        (SHARED[:3], "an assignment for consumer-2"),
        ((*SHARED, history.revoked(30, A, 0, 1)), "an assignment for consumer-1"),
        ((*SHARED, assigned(30, A, 2, 0, 1)), "all members in one generation"),
        ((*SHARED, killed(30, B)), "an owner for 2 and 3"),
        (SHARED[:5], "a record for consumer-2"),
        (SHARED[:6], "the server's description of the group"),
        (
            (*SHARED[:6], seen(30, {A: (0, 1)}, state="PreparingRebalance")),
            "the server to describe the group as Stable",
        ),
        ((*SHARED[:6], seen(30, {A: (0, 1), B: (2,)})), "the server to describe the group as Stable"),
    ],
)
def test_not_shared_yet(events, missing):
    assert shared(scene_of(*events), 5) == missing


def test_an_old_description_does_not_count():
    assert shared(scene_of(*SHARED), 25) == "the server's description of the group"


def test_the_server_stays_down_for_a_while():
    scene = scene_of(*SHARED, killed(30, "server"), exited(31, "server", -9))
    assert down(scene, 30)
    scene.at_ms = 1_030
    assert down(scene, 30) == ""


def test_all_go_on_after_the_restart():
    scene = scene_of(*SHARED, started(5, "producer-1"), history.acknowledged(25, "producer-1", READ))
    scene.apply(killed(30, "server"))
    assert goes_on(scene, 30) == "the server's ready line"
    scene.apply(ready(40))
    scene.apply(committed(35, A, (0, 1)))
    scene.apply(committed(45, B, (2, 1)))
    assert goes_on(scene, 30) == "a commit of consumer-1"
    scene.apply(committed(46, A, (0, 2)))
    assert goes_on(scene, 30) == "an acknowledgement for producer-1"
    scene.apply(history.acknowledged(50, "producer-1", READ))
    assert goes_on(scene, 30) == "the server's description of the group"
    scene.apply(seen(60, {A: (0, 1), B: (2, 3)}))
    assert goes_on(scene, 30) == ""


def test_all_read():
    scene = scene_of(*SHARED, started(5, "producer-1"), stopping(30, "producer-1"))
    assert all_read(scene, 30) == "producer-1 to finish"
    scene.apply(history.acknowledged(40, "producer-1", READ))
    scene.apply(exited(41, "producer-1"))
    scene.apply(seen(39, ends=((0, 3),), committed=((0, 3),)))
    assert all_read(scene, 30) == "the server's description of the group"
    scene.apply(seen(50, ends=((0, 4),), committed=((0, 3),)))
    assert all_read(scene, 30) == "1 records to be read and committed"
    scene.apply(seen(60, ends=((0, 4),), committed=((0, 4),)))
    assert all_read(scene, 30) == ""


def test_all_left():
    scene = scene_of(*SHARED, killed(30, B), stopping(40, A))
    assert all_left(scene, 40) == "consumer-1 to leave"
    scene.apply(exited(41, A))
    assert all_left(scene, 40) == "the server to describe the group as Empty"
    scene.apply(seen(50, {}, state="Empty"))
    assert all_left(scene, 40) == ""


def test_counted():
    scene = scene_of()
    assert counted(scene, 0) == "Spark"
    scene.apply(Counted(name="spark", at_ms=1, records=1, values=1))
    assert counted(scene, 0) == ""


def test_progress_as_it_was():
    step = Step(title="x", action=Start(("server",)), awaits=server_ready)
    progress = Progress(step=step, began_ms=10, done_ms=20)
    assert progress.at(5) == Progress(step=step)
    assert progress.at(10) == Progress(step=step, began_ms=10)
    assert progress.at(20) == progress
    assert progress.at(15).missing(scene_of()) == "the server's ready line"
    assert progress.missing(scene_of()) == progress.at(5).missing(scene_of()) == ""
