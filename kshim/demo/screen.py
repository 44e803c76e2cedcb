"""Where a run is shown: live in a terminal, or as plain lines anywhere else."""

from collections.abc import Sequence
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live

from kshim.demo.events import Assigned, Event, Exited, Joining, Killed, Ready, Revoked, now_ms
from kshim.demo.picture import group_state, picture, seconds
from kshim.demo.scene import Scene
from kshim.demo.story import Progress

PER_SECOND = 10
FIGURES_EVERY_MS = 2_000


class Screen(Protocol):
    """Shown what a run does while it goes on."""

    def tell(self, event: Event) -> None:
        """Something happened."""

    def show(self, scene: Scene, story: Sequence[Progress]) -> None:
        """This is how things are."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *error: object) -> None:
        """End; what was shown stays."""


def screen_for(console: Console) -> Screen:
    """A live view where the console can draw one."""
    draws = console.is_terminal and not console.is_dumb_terminal and console.encoding.startswith("utf")
    return LiveScreen(console) if draws else PlainScreen(console)


class LiveScreen:
    """A table that changes in place, the story so far under it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.live = Live(console=console, auto_refresh=False)
        self.drawn_ms = 0

    def tell(self, event: Event) -> None:
        """The table shows it."""

    def show(self, scene: Scene, story: Sequence[Progress]) -> None:
        """Draw it, unless it was drawn a moment ago."""
        due = scene.at_ms - self.drawn_ms >= 1000 / PER_SECOND
        self.live.update(picture(scene, story, self.console.width), refresh=due)
        self.drawn_ms = scene.at_ms if due else self.drawn_ms

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.live.refresh()
        self.live.stop()


class PlainScreen:
    """One line for each thing that happens, and the figures every two seconds."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.began_ms = now_ms()
        self.figures_ms = 0
        self.figures = ""
        self.said: set[str] = set()

    def line(self, at_ms: int, text: str) -> None:
        """One line, out at once."""
        line = f"{seconds(at_ms, self.began_ms):>7}  {text}"
        self.console.print(line, highlight=False, soft_wrap=True, markup=False)
        self.console.file.flush()

    def once(self, at_ms: int | None, text: str) -> None:
        """A line that is said once, when its time has come."""
        if at_ms is not None and text not in self.said:
            self.said.add(text)
            self.line(at_ms, text)

    def tell(self, event: Event) -> None:
        """A line, if there are words for it."""
        if text := words(event):
            self.line(event.at_ms, f"  {event.name} {text}")

    def show(self, scene: Scene, story: Sequence[Progress]) -> None:
        """The steps that began or are done since, and now and then the figures."""
        for progress in story:
            self.once(progress.began_ms, f"* {progress.step.title}")
            self.once(progress.done_ms, f"  done: {progress.step.title}")
        if (
            scene.seen
            and scene.at_ms - self.figures_ms >= FIGURES_EVERY_MS
            and figures(scene) != self.figures
        ):
            self.figures_ms, self.figures = scene.at_ms, figures(scene)
            self.line(scene.at_ms, f"  {self.figures}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Every line is out."""


def numbers(partitions: Sequence[int]) -> str:
    """Partition numbers in words."""
    return f"partitions {' '.join(map(str, partitions))}" if partitions else "no partitions"


def words(event: Event) -> str:
    """An event in words, after the name of who it happened to; "" for those that come all the time."""
    match event:
        case Ready():
            return f"accepts connections at {event.address}"
        case Joining():
            return "asks to join the group"
        case Revoked() if event.partitions:
            return f"gives back {numbers(event.partitions)}"
        case Assigned():
            return f"has {numbers(event.partitions)} in generation {event.generation}"
        case Killed():
            return "is killed (SIGKILL)"
        case Exited() if event.status == 0:
            return "has ended"
    return ""


def figures(scene: Scene) -> str:
    """The state of things in one line."""
    return (
        f"group {group_state(scene)}, generation {scene.generation}: {scene.acknowledged} acknowledged, "
        f"{scene.received} received, {sum(scene.lag.values())} not yet committed"
    )
