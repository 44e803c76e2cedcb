"""The view of a run: live in a terminal, plain lines elsewhere."""

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
    """Shows a run under way."""

    def tell(self, event: Event) -> None:
        """Show one event."""

    def show(self, scene: Scene, story: Sequence[Progress]) -> None:
        """Show the present state."""

    def __enter__(self) -> Self:
        """Begin to show."""

    def __exit__(self, *error: object) -> None:
        """End the view. Its last state stays on the terminal."""


def screen_for(console: Console) -> Screen:
    """A live view if the console can draw one, else plain lines."""
    draws = console.is_terminal and not console.is_dumb_terminal and console.encoding.startswith("utf")
    return LiveScreen(console) if draws else PlainScreen(console)


class LiveScreen:
    """A view that changes in place: the members' table and the story so far."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.live = Live(console=console, auto_refresh=False)
        self.drawn_ms = 0

    def tell(self, event: Event) -> None:
        """Do nothing: the table shows the event's effect."""

    def show(self, scene: Scene, story: Sequence[Progress]) -> None:
        """Draw the state, at most PER_SECOND times a second."""
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
    """Prints one line for each event, and the counts every two seconds."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.began_ms = now_ms()
        self.figures_ms = 0
        self.figures = ""
        self.said: set[str] = set()

    def line(self, at_ms: int, text: str) -> None:
        """Print one line at once."""
        line = f"{seconds(at_ms, self.began_ms):>7}  {text}"
        self.console.print(line, highlight=False, soft_wrap=True, markup=False)
        self.console.file.flush()

    def once(self, at_ms: int | None, text: str) -> None:
        """Print a line, unless it was printed before or `at_ms` is None."""
        if at_ms is not None and text not in self.said:
            self.said.add(text)
            self.line(at_ms, text)

    def tell(self, event: Event) -> None:
        """Print a line, unless `words` has none for the event."""
        if text := words(event):
            self.line(event.at_ms, f"  {event.name} {text}")

    def show(self, scene: Scene, story: Sequence[Progress]) -> None:
        """Print the steps that have begun or ended since the last call, and every two seconds the counts."""
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
        """Do nothing: every line is printed."""


def numbers(partitions: Sequence[int]) -> str:
    """The partition numbers in words."""
    return f"partitions {' '.join(map(str, partitions))}" if partitions else "no partitions"


def words(event: Event) -> str:
    """An event as a predicate to put behind the process's name; "" for events that come all the time."""
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
    """The group's state and the counts of records, in one line."""
    return (
        f"group {group_state(scene)}, generation {scene.generation}: {scene.acknowledged} acknowledged, "
        f"{scene.received} received, {sum(scene.lag.values())} not yet committed"
    )
