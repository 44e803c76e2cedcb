"""Plays the story's steps with real processes, and shows them."""

import shlex
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from types import FrameType
from typing import NoReturn

from rich.console import Console

from kshim.demo.events import Event, Interrupted, now_ms
from kshim.demo.processes import Processes
from kshim.demo.report import report, save_picture
from kshim.demo.scene import SERVER, SPARK, WATCHER, Scene
from kshim.demo.screen import Screen, screen_for
from kshim.demo.story import PARTITIONS, SPARK_STEP, STORY, Action, Kill, Progress, Start, Step, Stop

TOPIC = "demo"
GROUP = "demo-group"
TICK_S = 0.1
PASSED = 0
FAILED = 1
SERVE = f"{shlex.quote(sys.executable)} -m kshim serve --listen 127.0.0.1:{{port}} --data-dir {{data_dir}}"


class RunFailed(Exception):
    """The run cannot go on; `Scene.failure` says why."""


class RunInterrupted(Exception):
    """The user wants the run to end. str() is the signal's name."""


def free_port() -> int:
    """A free port below the range that the system gives to outgoing connections.

    While the server is down, its clients go on trying to connect. The system could give a port of that range
    to one of these connections, and the server could not listen there again.
    """
    for port in range(20_000 + now_ms() % 10_000, 32_768):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port between 20000 and 32767")


@contextmanager
def signals_told(inbox: SimpleQueue[Event]) -> Iterator[None]:
    """Turn SIGINT, SIGTERM and SIGHUP into events in the inbox within the block, so none interrupts an
    action.
    """

    def tell(number: int, frame: FrameType | None) -> None:
        inbox.put(Interrupted(name=signal.Signals(number).name, at_ms=now_ms()))

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, tell) for number in numbers]
    try:
        yield
    finally:
        for number, previous in zip(numbers, before, strict=True):
            signal.signal(number, previous)


class Run:
    """Performs the steps' actions, waits for their effects, and keeps scene, story and screen up to date."""

    def __init__(self, processes: Processes, screen: Screen, directory: Path, server: str) -> None:
        self.processes = processes
        self.screen = screen
        self.data_dir = directory / "data"
        self.server = server
        self.port = free_port()
        self.scene = Scene(began_ms=now_ms(), partitions=PARTITIONS)
        self.story: list[Progress] = []

    def play(self, steps: Sequence[Step], steady_s: float) -> None:
        """Play the steps in order. Raises RunFailed or RunInterrupted."""
        self.story = [Progress(step=step) for step in steps]
        for progress in self.story:
            step, progress.began_ms = progress.step, now_ms()
            self.screen.show(self.scene, self.story)
            self.perform(step.action)
            self.take_in(timeout_s=0)
            while missing := progress.missing(self.scene):
                self.take_in(TICK_S)
                if now_ms() - progress.began_ms > step.timeout_s * 1000:
                    self.fail(f"{step.title}: waited {step.timeout_s} s for {missing}")
            progress.done_ms = now_ms()
            self.go_on(steady_s if step.steady else 0)

    def fail(self, reason: str) -> NoReturn:
        """End the run. Raises RunFailed."""
        self.scene.failure = reason
        self.screen.show(self.scene, self.story)
        raise RunFailed

    def go_on(self, seconds: float) -> None:
        """Leave all processes undisturbed for `seconds`."""
        until_ms = now_ms() + int(seconds * 1000)
        self.take_in(timeout_s=0)
        while (left_ms := until_ms - now_ms()) > 0:
            self.take_in(min(TICK_S, left_ms / 1000))

    def take_in(self, timeout_s: float) -> None:
        """Wait at most `timeout_s` for an event, then apply all events in the inbox."""
        try:
            event = self.processes.inbox.get(block=timeout_s > 0, timeout=timeout_s or None)
            while True:
                self._apply(event)
                event = self.processes.inbox.get_nowait()
        except Empty:
            pass
        self.scene.at_ms = now_ms()
        self.screen.show(self.scene, self.story)
        if self.scene.failure:
            self.fail(self.scene.failure)

    def _apply(self, event: Event) -> None:
        if isinstance(event, Interrupted):
            raise RunInterrupted(event.name)
        self.scene.apply(event)
        self.screen.tell(event)

    def perform(self, action: Action) -> None:
        """Perform a step's action."""
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
        """The command line of the process of this name."""
        address, kind = self.scene.address, name.split("-")[0]
        arguments = {
            WATCHER: [address, GROUP, TOPIC, str(PARTITIONS)],
            "consumer": [address, GROUP, TOPIC],
            "producer": [address, TOPIC],
            SPARK: [address, TOPIC],
        }
        if name == SERVER:
            data_dir = shlex.quote(str(self.data_dir))
            return shlex.split(self.server.format(port=self.port, data_dir=data_dir))
        return [sys.executable, "-m", f"kshim.demo.{kind}", name, *arguments[kind]]


@contextmanager
def scratch_dir() -> Iterator[Path]:
    """A temporary directory, removed afterwards."""
    with TemporaryDirectory(prefix="kshim-demo-", ignore_cleanup_errors=True) as path:
        yield Path(path)


def demonstrate(*, spark: bool, steady_s: float, server: str | None, svg: Path | None) -> int:
    """Play one run on this terminal. Returns the exit status."""
    console = Console()
    inbox: SimpleQueue[Event] = SimpleQueue()
    with signals_told(inbox), scratch_dir() as directory, Processes(directory, inbox) as processes:
        screen = screen_for(console)
        run = Run(processes, screen, directory, server or SERVE)
        try:
            with screen:
                run.play((*STORY, SPARK_STEP) if spark else STORY, steady_s)
        except RunFailed:
            pass
        except RunInterrupted as interrupted:
            console.print("stopped")
            return 128 + signal.Signals[str(interrupted)]
    if svg:
        save_picture(run.scene, run.story, svg)
    return PASSED if report(console, run.scene) else FAILED
