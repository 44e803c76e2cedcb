"""What viewers see: rows, cells, bars, the checklist and the results, at the widths of real terminals."""

from io import StringIO

import pytest
from rich.console import Console

from kshim.demo.picture import bar, cells, picture, picture_at
from kshim.demo.rebalances import rebalances
from kshim.demo.report import report, save_picture
from kshim.demo.results import rebalance_table
from kshim.demo.story import STORY, Progress
from tests.demo.history import RUN, scene_of


def printed(renderable, width=80):
    out = StringIO()
    Console(file=out, width=width).print(renderable)
    return out.getvalue().splitlines()


def story_at(count):
    """The story with `done` steps done and the next one begun."""
    story = [Progress(step=step) for step in STORY]
    for number, progress in enumerate(story[: count + 1]):
        progress.began_ms = number * 1_000
        progress.done_ms = number * 1_000 + 500 if number < count else None
    return story


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "    "), (1, "▏   "), (50, "██  "), (56, "██▎ "), (100, "████"), (900, "████")]
)
def test_bar(amount, text):
    assert bar(amount, 100, 4) == text


def test_cells_keep_their_places():
    assert cells("consumer-1", (1, 2), 4, True).plain == " ·  1  2  · "
    assert cells("consumer-1", (), 2, True).plain == " ·  · "


def test_a_dead_members_cells_look_different():
    alive, dead = (cells("consumer-1", (0,), 1, lives) for lives in (True, False))
    assert alive.plain == dead.plain
    assert alive.spans != dead.spans


@pytest.mark.parametrize("width", [80, 100, 120, 136, 200])
def test_the_picture_fits_its_terminal(width):
    lines = printed(picture(scene_of(*RUN), story_at(5), width), width)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 24
    shown = "\n".join(lines)
    for text in (
        "127.0.0.1:9092 ready",
        "consumer-1",
        "killed",
        "Stable",
        "generation 3",
        "received",
        STORY[-1].title,
    ):
        assert text in shown


def test_a_row_tells_all_of_a_member():
    row = next(
        line for line in printed(picture(scene_of(*RUN[:16]), story_at(4), 80)) if "consumer-2" in line
    )
    assert row.split() == ["│", "consumer-2", "consuming", "2", "·", "·", "2", "3", "███▍", "42", "0", "│"]


def test_the_checklist():
    lines = printed(picture(scene_of(*RUN), story_at(1), 80))[-len(STORY) :]
    assert lines[0].split()[:3] == ["✔", "0.5", "s"]
    assert lines[1].startswith("▸ 12.0 s a topic of 6 partitions is made")
    assert lines[2].split()[0] == "·"


def test_the_step_at_which_a_run_failed():
    scene = scene_of(*RUN)
    scene.failure = "no luck"
    assert any(
        line.startswith("✘ 12.0 s two producers send") for line in printed(picture(scene, story_at(2), 80))
    )


def test_the_past_is_as_it_was():
    lines = "\n".join(printed(picture_at(scene_of(*RUN), story_at(9), 2_500, 80)))
    assert "generation 2" in lines
    assert "killed" not in lines.split("✔")[0]
    assert lines.count("✔") == 3


def test_rebalances_show_who_owns_what():
    lines = printed(rebalance_table(rebalances(RUN), 0, 4), 90)
    rows = [" ".join(line.split()) for line in lines if line.rstrip().endswith(" s")]
    assert rows == [
        "1.0 s consumer-1 joins - > 1 1 1 1 1 0.10 s",
        "1.2 s consumer-2 joins 1 > 2 1 1 2 2 0.20 s 0.23 s",
        "3.0 s consumer-2 is killed 2 > 3 1 1 1 1 6.00 s 6.01 s",
        "10.0 s server killed, 1.3 s down 3 kept 1 1 1 1 1.80 s",
    ]


def test_a_good_run_is_reported_good():
    console = Console(file=StringIO(), width=80)
    assert report(console, scene_of(*RUN))


def test_a_failed_run_says_why_and_skips_the_checks():
    out = StringIO()
    scene = scene_of(*RUN)
    scene.failure = "consumer-1 failed: no luck"
    assert not report(Console(file=out, width=80), scene)
    assert out.getvalue().splitlines()[-1] == "failed: consumer-1 failed: no luck"
    assert "Checks" not in out.getvalue()


def test_a_broken_promise_is_reported_bad():
    out = StringIO()
    lost = [event for event in RUN if event.at_ms != 1_500]
    assert not report(Console(file=out, width=80), scene_of(*lost))
    assert "FAILED  every acknowledged record was received" in out.getvalue()


def test_the_saved_picture_needs_nothing_else(tmp_path):
    path = tmp_path / "demo.svg"
    save_picture(scene_of(*RUN), story_at(9), path)
    svg = path.read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert "@font-face" not in svg
    assert "consumer-2" in svg
