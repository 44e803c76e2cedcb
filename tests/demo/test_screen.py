"""Without a terminal the demo prints plain lines, each once, in characters that every system can print."""

from io import StringIO

import pytest
from rich.console import Console

from kshim.demo.screen import LiveScreen, PlainScreen, figures, screen_for, words
from kshim.demo.story import STORY, Progress
from tests.demo.history import RUN, A, assigned, committed, exited, killed, revoked, scene_of


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (assigned(1, A, 3, 0, 4), "has partitions 0 4 in generation 3"),
        (assigned(1, A, 3), "has no partitions in generation 3"),
        (revoked(1, A, 2), "gives back partitions 2"),
        (revoked(1, A), ""),
        (killed(1, A), "is killed (SIGKILL)"),
        (exited(1, A, -9), ""),
        (exited(1, A), "has ended"),
        (committed(1, A, (0, 1)), ""),
    ],
)
def test_words(event, text):
    assert words(event) == text


def test_figures():
    assert (
        figures(scene_of(*RUN))
        == "group Stable, generation 3: 4 acknowledged, 4 received, 0 not yet committed"
    )


def test_plain_lines():
    out = StringIO()
    screen = PlainScreen(Console(file=out, width=80))
    screen.began_ms = 0
    scene = scene_of(*RUN)
    story = [Progress(step=STORY[0], began_ms=100)]
    screen.show(scene, story)
    screen.tell(RUN[8])
    story[0].done_ms = 1_200
    screen.show(scene, story)
    screen.show(scene, story)
    assert out.getvalue().splitlines() == [
        "  0.1 s  * the server starts",
        " 12.0 s    group Stable, generation 3: 4 acknowledged, 4 received, 0 not yet committed",
        "  1.1 s    consumer-1 has partitions 0 1 2 3 in generation 1",
        "  1.2 s    done: the server starts",
    ]
    assert out.getvalue().isascii()


@pytest.mark.parametrize(
    ("terminal", "term", "kind"),
    [(False, "xterm", PlainScreen), (True, "xterm", LiveScreen), (True, "dumb", PlainScreen)],
)
def test_a_live_view_only_where_it_can_be_drawn(terminal, term, kind):
    console = Console(file=StringIO(), force_terminal=terminal, _environ={"TERM": term})
    assert isinstance(screen_for(console), kind)


def test_the_live_view_ends_with_the_last_state():
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=30, _environ={"TERM": "xterm"})
    with LiveScreen(console) as screen:
        screen.show(scene_of(*RUN[:3]), [])
        screen.show(scene_of(*RUN), [])
    assert "generation 3" in out.getvalue()
