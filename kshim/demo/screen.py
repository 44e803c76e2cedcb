"""Where a run is shown: live in a terminal, or as plain lines anywhere else."""

from collections.abc import Sequence
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live

from kshim.demo.events import Assigned, Event, Exited, Joining, Killed, Ready, Revoked
from kshim.demo.picture import FULL_BAR_AT_LEAST, Told, group_state, lag_of, picture, seconds
from kshim.demo.scene import Scene
from kshim.demo.story import Step

PER_SECOND = 10
FIGURES_EVERY_MS = 2_000


class Screen(Protocol):
    """What a run tells while it goes."""

    def begin(self, step: Step, at_ms: int) -> None:
        """A step begins."""

    def wait(self, missing: str) -> None:
        """The step waits for this."""

    def done(self, at_ms: int) -> None:
        """The step is done."""

    def fail(self) -> None:
        """The step is what the run failed at."""

    def tell(self, event: Event) -> None:
        """Something happened."""

    def show(self, scene: Scene) -> None:
        """This is how things are."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *error: object) -> None:
        """End; what was shown stays."""


def screen_for(console: Console, steps: Sequence[Step], began_ms: int) -> Screen:
    """A live view where the console can draw one."""
    draws = console.is_terminal and not console.is_dumb_terminal and console.encoding.startswith("utf")
    return LiveScreen(console, steps) if draws else PlainScreen(console, began_ms)


class LiveScreen:
    """A table that changes in place, the story so far under it."""

    def __init__(self, console: Console, steps: Sequence[Step]) -> None:
        self.story = [Told(title=step.title) for step in steps]
        self.current = self.story[0]
        self.full_lag = FULL_BAR_AT_LEAST
        self.shown_ms = 0
        self.console = console
        self.live = Live(console=console, auto_refresh=False)

    def begin(self, step: Step, at_ms: int) -> None:
        self.current = next(told for told in self.story if told.title == step.title)
        self.current.began_ms = at_ms

    def wait(self, missing: str) -> None:
        self.current.missing = missing

    def done(self, at_ms: int) -> None:
        self.current.done_ms = at_ms

    def fail(self) -> None:
        self.current.failed = True

    def tell(self, event: Event) -> None:
        pass

    def show(self, scene: Scene) -> None:
        self.full_lag = max([self.full_lag, *(lag_of(scene, name) for name in scene.members)])
        if scene.at_ms - self.shown_ms >= 1000 / PER_SECOND:
            self.shown_ms = scene.at_ms
            self.draw(scene)

    def draw(self, scene: Scene) -> None:
        """Draw now."""
        self.live.update(picture(scene, self.story, self.full_lag, self.console.width), refresh=True)

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.live.stop()


class PlainScreen:
    """One line for each thing that happens, and the figures every two seconds."""

    def __init__(self, console: Console, began_ms: int) -> None:
        self.console = console
        self.began_ms = began_ms
        self.figures_ms = 0

    def line(self, at_ms: int, text: str) -> None:
        """One line, out at once."""
        line = f"{seconds(at_ms, self.began_ms):>7}  {text}"
        self.console.print(line, highlight=False, soft_wrap=True, markup=False)
        self.console.file.flush()

    def begin(self, step: Step, at_ms: int) -> None:
        self.title = step.title
        self.line(at_ms, f"* {step.title}")

    def wait(self, missing: str) -> None:
        pass

    def done(self, at_ms: int) -> None:
        self.line(at_ms, f"  done: {self.title}")

    def fail(self) -> None:
        pass

    def tell(self, event: Event) -> None:
        if text := words(event):
            self.line(event.at_ms, f"  {event.name} {text}")

    def show(self, scene: Scene) -> None:
        if scene.seen and scene.at_ms - self.figures_ms >= FIGURES_EVERY_MS:
            self.figures_ms = scene.at_ms
            self.line(scene.at_ms, f"  {figures(scene)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.console.file.flush()


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
