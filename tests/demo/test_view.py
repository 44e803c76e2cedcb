"""What users see: the live view, the plain lines and the results."""

from io import StringIO

import pytest
from rich.console import Console

from kshim.demo.scene import Step
from kshim.demo.view import Screen, cells, members_panel, report, save_svg, story_table
from tests.demo.history import RUN, A, B, add, event, look, rebalance, scene_of

STORY = ("The group rebalanced because a member joined: consumer-2.", "It took 0.5 s.")


@pytest.fixture
def scene():
    """A scene at the end of the run, with the server's account of one rebalance."""
    found = scene_of(*RUN)
    found.at_ms = 2_000
    found.rebalances = [rebalance(2, *STORY)]
    return found


def printed(renderable, width=80):
    out = StringIO()
    Console(file=out, width=width).print(renderable)
    return out.getvalue().splitlines()


def test_cells_keep_their_places():
    assert cells(A, (1, 2), True).plain == " ·  1  2  ·  ·  · "
    alive, dead = (cells(A, (0,), lives) for lives in (True, False))
    assert alive.plain == dead.plain
    assert alive.spans != dead.spans


def test_the_members(scene):
    add(scene, event("killed", 950, B), look(960, {B: (3, 4, 5)}, committed={3: 1}, ends={3: 251}))
    lines = printed(members_panel(scene, 80))
    assert max(map(len, lines)) == 80
    shown = "\n".join(lines)
    for text in ("127.0.0.1:9092 ready", "group Stable", "generation 2", STORY[0]):
        assert text in shown
    (row,) = (line for line in lines if line.startswith(f"│ {B}"))
    assert row.split() == ["│", B, "killed", "2", "·", "·", "·", "3", "4", "5", "████", "250", "1", "│"]


def test_the_steps(scene):
    scene.steps = [Step("the first", 0, 500, 1), Step("the next", 600)]
    first, second = printed(story_table(scene))
    assert first.split() == ["✔", "0.5", "s", "the", "first", "generation", "1"]
    assert second.split() == ["▸", "2.0", "s", "the", "next"]
    scene.failure = "no luck"
    assert printed(story_table(scene))[1].startswith("✘")


def test_a_good_run_is_reported_good(scene):
    out = StringIO()
    assert report(Console(file=out, width=80), scene)
    assert "2  The group rebalanced because a member joined: consumer-2." in out.getvalue()
    assert "It took 0.5 s." in out.getvalue()


def test_a_failed_run_says_why_and_skips_the_checks(scene):
    out = StringIO()
    scene.failure = "consumer-1 failed: no luck"
    assert not report(Console(file=out, width=80), scene)
    assert out.getvalue().splitlines()[-1] == "failed: consumer-1 failed: no luck"
    assert "Checks" not in out.getvalue()


def test_a_broken_promise_is_reported_bad():
    out = StringIO()
    assert not report(Console(file=out, width=80), scene_of(*RUN[:8], *RUN[9:]))
    assert "FAILED  every acknowledged record was received" in out.getvalue()


def test_the_saved_picture_needs_nothing_else(scene, tmp_path):
    path = tmp_path / "demo.svg"
    save_svg(members_panel(scene, 80), scene, path)
    svg = path.read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert "@font-face" not in svg
    assert "consumer-2" in svg


def test_plain_lines_come_once(scene):
    out = StringIO()
    screen = Screen(Console(file=out, width=80))
    scene.steps[0].done_ms = 1_200
    screen.show(scene)
    screen.show(scene)
    assert out.getvalue().splitlines() == [
        "  0.0 s  * it begins",
        "  0.3 s    consumer-1 has [0, 1, 2, 3, 4, 5] in generation 1",
        "  0.5 s    consumer-1 has [0, 1, 2] in generation 2",
        "  0.5 s    consumer-2 has [3, 4, 5] in generation 2",
        "  1.2 s    done: it begins",
        "  2.0 s    3 acknowledged, 4 received, 0 not yet committed",
        f"  2.0 s    generation 2: {STORY[0]}",
    ]
    assert out.getvalue().isascii()


@pytest.mark.parametrize(
    ("terminal", "term", "live"), [(False, "xterm", False), (True, "xterm", True), (True, "dumb", False)]
)
def test_a_live_view_only_where_it_can_be_drawn(terminal, term, live):
    console = Console(file=StringIO(), force_terminal=terminal, _environ={"TERM": term})
    assert (Screen(console).live is not None) is live


def test_the_live_view_ends_with_the_last_state(scene):
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=30, _environ={"TERM": "xterm"})
    with Screen(console) as screen:
        screen.show(scene_of())
        screen.show(scene)
    assert "generation 2" in out.getvalue()
