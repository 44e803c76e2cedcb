"""A run from first to last: plays the story's steps with real processes, and shows it."""

import shlex
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from tempfile import TemporaryDirectory
from types import FrameType

from rich.console import Console
from rich.text import Text

from kshim.demo.checks import checks
from kshim.demo.events import Event, Interrupted, now_ms
from kshim.demo.picture import check_table, rebalance_table
from kshim.demo.processes import Processes
from kshim.demo.rebalances import rebalances
from kshim.demo.scene import SERVER, WATCHER, Scene
from kshim.demo.screen import Screen, screen_for
from kshim.demo.story import PARTITIONS, SPARK_STEP, STORY, Action, Kill, Start, Step, Stop

TOPIC = "demo"
GROUP = "demo-group"
TICK_S = 0.1
PASSED = 0
FAILED = 1
SERVE = f"{shlex.quote(sys.executable)} -m kshim serve --listen 127.0.0.1:{{port}} --data-dir {{data_dir}}"


class RunFailed(Exception):
    """The run cannot go on; the message is one line."""


class RunInterrupted(Exception):
    """The user wants it to end; carries the signal's number."""


def free_port() -> int:
    """A port that nobody listens on, below the ports that outgoing connections get.

    While the server is down its clients go on dialling. From the range of outgoing ports one of them could be
    given the server's own, and then the server could not come back.
    """
    for port in range(20_000 + now_ms() % 10_000, 32_768):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RunFailed("no free port between 20000 and 32767")


@contextmanager
def signals_told(processes: Processes) -> Iterator[None]:
    """Within: SIGINT, SIGTERM and SIGHUP are events like others, so none breaks into a half-done action."""

    def tell(number: int, frame: FrameType | None) -> None:
        processes.inbox.put(Interrupted(name=signal.Signals(number).name, at_ms=now_ms()))

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, tell) for number in numbers]
    try:
        yield
    finally:
        for number, previous in zip(numbers, before, strict=True):
            signal.signal(number, previous)


class Run:
    """Performs actions, waits for what they lead to, and keeps the scene and the screen up to date."""

    def __init__(self, processes: Processes, screen: Screen, data_dir: Path, server: str = SERVE) -> None:
        self.processes = processes
        self.screen = screen
        self.data_dir = data_dir
        self.server = server
        self.port = free_port()
        self.scene = Scene(began_ms=now_ms(), partitions=PARTITIONS)

    def play(self, steps: Sequence[Step], steady_s: float) -> None:
        """Play the steps in order. Raises RunFailed or RunInterrupted."""
        for step in steps:
            since_ms = now_ms()
            self.screen.begin(step, since_ms)
            self.perform(step.action)
            self.take_in(timeout_s=0)
            while missing := step.awaits(self.scene, since_ms):
                if now_ms() - since_ms > step.timeout_s * 1000:
                    raise RunFailed(f"{step.title}: waited {step.timeout_s} s for {missing}")
                self.screen.wait(missing)
                self.take_in(TICK_S)
            self.screen.done(now_ms())
            if step.steady:
                self.go_on(steady_s)

    def go_on(self, seconds: float) -> None:
        """Let everybody work undisturbed."""
        until_ms = now_ms() + int(seconds * 1000)
        while (left_ms := until_ms - now_ms()) > 0:
            self.take_in(min(TICK_S, left_ms / 1000))

    def take_in(self, timeout_s: float) -> None:
        """Wait so long for an event, then take in all that are there."""
        try:
            event = self.processes.inbox.get(block=timeout_s > 0, timeout=timeout_s or None)
            while True:
                self._apply(event)
                event = self.processes.inbox.get_nowait()
        except Empty:
            pass
        self.scene.at_ms = now_ms()
        self.screen.show(self.scene)
        if self.scene.failure:
            raise RunFailed(self.scene.failure)

    def _apply(self, event: Event) -> None:
        if isinstance(event, Interrupted):
            raise RunInterrupted(event.name)
        self.scene.apply(event)
        self.screen.tell(event)

    def perform(self, action: Action) -> None:
        """Do what a step says."""
        match action:
            case Start():
                for name in action.names:
                    self.processes.start(name, self.command(name))
            case Kill():
                self.processes.kill(action.name)
            case Stop():
                for name in action.names:
                    self.processes.stop(name)

    def command(self, name: str) -> list[str]:
        """What to run for a process of this name."""
        address, kind = self.scene.address, name.split("-")[0]
        arguments = {
            WATCHER: [address, GROUP, TOPIC, str(PARTITIONS)],
            "consumer": [address, GROUP, TOPIC],
            "producer": [address, TOPIC],
            "spark": [address, TOPIC],
        }
        if name == SERVER:
            data_dir = shlex.quote(str(self.data_dir / "data"))
            return shlex.split(self.server.format(port=self.port, data_dir=data_dir))
        return [sys.executable, "-m", f"kshim.demo.{kind}", name, *arguments[kind]]


@contextmanager
def scratch_dir() -> Iterator[Path]:
    """A directory that is gone afterwards."""
    with TemporaryDirectory(prefix="kshim-demo-", ignore_cleanup_errors=True) as path:
        yield Path(path)


def demonstrate(*, spark: bool, steady_s: float, server: str | None, svg: Path | None) -> int:
    """One run, shown on this terminal. Returns the exit status."""
    steps = (*STORY, SPARK_STEP) if spark else STORY
    console = Console()
    began_ms = now_ms()
    failure = ""
    with scratch_dir() as directory, Processes(directory) as processes, signals_told(processes):
        screen = screen_for(console, steps, began_ms)
        run = Run(processes, screen, directory, server or SERVE)
        run.scene.began_ms = began_ms
        try:
            with screen:
                run.play(steps, steady_s)
        except RunInterrupted as interrupted:
            console.print("stopped")
            return 128 + signal.Signals[str(interrupted)]
        except RunFailed as failed:
            failure = str(failed)
    return report(console, run.scene, failure)


def report(console: Console, scene: Scene, failure: str) -> int:
    """Print the rebalances, and the checks of a story that came to its end. Returns the exit status."""
    if found := rebalances(scene.history, PARTITIONS):
        console.print(rebalance_table(found, scene.began_ms, PARTITIONS))
    if failure:
        console.print(Text(f"failed: {failure}", "bold red"), soft_wrap=True)
        return FAILED
    outcome = checks(scene.history)
    console.print(check_table(outcome))
    return PASSED if all(check.holds for check in outcome) else FAILED
