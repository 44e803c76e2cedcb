"""The story of a run, played with real processes.

Each worker has its own process group, so that Ctrl-C reaches only the parent, and a kill also reaches the
worker's children.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rich.console import Console

from kshim.control.client import ControlError
from kshim.demo.scene import GROUP, PARTITIONS, SPARK, TOPIC, Look, Scene, Step, now_ms
from kshim.demo.view import NARROW, Screen, members_panel, report, save_svg
from kshim.testing.brokers import Refused
from kshim.testing.groups import TopicPartition
from kshim.testing.server import Kshim, NotStarted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kshim.demo.scene import Event
    from kshim.testing.rebalances import Rebalance

VICTIM = "consumer-2"
TICK_S = 0.1
LOOK_EVERY_MS = 250
TIMEOUT_S = 30
"""The run fails if a step is not done within this time."""
SPARK_TIMEOUT_S = 300
DARK_S = 1.0
"""How long the server stays down."""
FLUSHED = {"flush.policy": "commit"}
"""The default of `kshim serve`: what is acknowledged is on the disk."""
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PASSED = 0
FAILED = 1


class RunFailed(Exception):
    """The run cannot go on. str() says why."""


class RunInterrupted(Exception):
    """The user wants the run to end. Its argument is the signal's number."""


class Workers:
    """The workers' processes by name. Their events arrive in one inbox."""

    def __init__(self, log_dir: Path) -> None:
        self.inbox: SimpleQueue[Event] = SimpleQueue()
        self._log_dir = log_dir
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._readers: list[threading.Thread] = []

    def start(self, bootstrap: str, *names: str) -> None:
        """Start these workers."""
        for name in names:
            with self._log(name).open("w") as log:
                self._running[name] = process = subprocess.Popen(
                    [sys.executable, "-m", "kshim.demo.workers", name, bootstrap],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    # A killed process's temporary files are removed with the run's directory.
                    env=os.environ | {"TMPDIR": str(self._log_dir)},
                    text=True,
                    encoding="utf-8",
                    process_group=0,
                )
            self.put("started", name)
            self._readers.append(threading.Thread(target=self._read, args=(name, process), daemon=True))
            self._readers[-1].start()

    def kill(self, name: str) -> None:
        """Send SIGKILL: the process cannot leave the group or close its connections."""
        self.put("killed", name)
        _kill(self._running[name])

    def stop(self, *names: str) -> None:
        """Close the workers' stdin, which asks them to end in good order."""
        for name in names:
            self.put("leaving", name)
            stdin = self._running[name].stdin
            assert stdin is not None
            stdin.close()

    def put(self, event: str, name: str) -> None:
        """Put an event of the parent's own into the inbox."""
        self.inbox.put({"event": event, "name": name, "at_ms": now_ms()})

    def close(self) -> None:
        """Kill all workers."""
        for process in self._running.values():
            _kill(process)
        for reader in self._readers:
            reader.join()

    def _read(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n"):  # a killed process may leave half a line
                self.inbox.put(json.loads(line))
        ended: Event = {"event": "ended", "name": name, "at_ms": now_ms(), "status": process.wait()}
        self.inbox.put({**ended, "said": self._last_line(name)})

    def _log(self, name: str) -> Path:
        return self._log_dir / f"{name}.log"

    def _last_line(self, name: str) -> str:
        lines = self._log(name).read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def _kill(process: subprocess.Popen[str]) -> None:
    # Signal the group, to reach the process's children (Spark's JVM). The group may be gone already.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


class Run:
    """Plays the story, and keeps scene and screen up to date. Its methods raise RunFailed."""

    def __init__(self, server: Kshim, workers: Workers, screen: Screen) -> None:
        self.server, self.workers, self.screen = server, workers, screen
        self.scene = Scene(began_ms=now_ms())
        self.still: RenderableType = ""
        """The members at the last look in which the killed one still had its partitions."""
        self._before: list[Rebalance] = []
        """The rebalances that the server reported before it was killed, as it then forgets them."""

    def play_on_screen(self, steady_s: float, spark: bool) -> None:
        """Play and show the story. If it cannot go on, `Scene.failure` says why."""
        with self.screen:
            try:
                self.play(steady_s, spark)
            except RunFailed as failed:
                self.scene.failure = str(failed)
            self.screen.show(self.scene)

    def play(self, steady_s: float, spark: bool) -> None:
        """Play the story. steady_s: how long the group works without disturbance after some of the steps."""
        scene, workers = self.scene, self.workers
        with self.step(f"the server starts, with a topic of {PARTITIONS} partitions"):
            self.start_server()
        with self.step("two producers send"):
            workers.start(scene.address, "producer-1", "producer-2")
            self.until(lambda: scene.is_answered("producer", 0))
        with self.step("consumer-1 and consumer-2 join", steady_s):
            workers.start(scene.address, "consumer-1", "consumer-2")
            self.until(scene.is_shared)
        with self.step("consumer-3 joins", steady_s):
            workers.start(scene.address, "consumer-3")
            self.until(scene.is_shared)
        with self.step(f"{VICTIM} is killed, its partitions move", steady_s):
            workers.kill(VICTIM)
            self.until(scene.is_shared)
        with self.step("the server is killed"):
            self.kill_server()
            self.go_on(DARK_S)
        with self.step("the server starts again, all go on", steady_s):
            self.start_server()
            ready_ms = now_ms()
            self.until(lambda: scene.is_answered("", ready_ms) and scene.is_shared())
        with self.step("the producers stop, the rest is read"):
            workers.stop("producer-1", "producer-2")
            self.until(scene.is_read)
        with self.step("consumer-1 and consumer-3 leave"):
            workers.stop("consumer-1", "consumer-3")
            self.until(scene.is_left)
        if spark:
            with self.step("PySpark counts the records"):
                workers.start(scene.address, SPARK)
                self.until(lambda: not scene.workers[SPARK].lives, SPARK_TIMEOUT_S)

    @contextmanager
    def step(self, title: str, steady_s: float = 0) -> Iterator[None]:
        """Show a step. Its actions are in the block. Afterwards leave all undisturbed for a while."""
        step = Step(title, began_ms=now_ms())
        self.scene.steps.append(step)
        self.take_in(timeout_s=0)
        yield
        step.done_ms, step.generation = now_ms(), self.scene.generation
        self.go_on(steady_s)

    def until(self, holds: Callable[[], bool], timeout_s: int = TIMEOUT_S) -> None:
        """Wait until something holds. It is asked after each event."""
        until_ms = now_ms() + timeout_s * 1000
        self.take_in(timeout_s=0)
        while not holds():
            if now_ms() > until_ms:
                raise RunFailed(f"{self.scene.steps[-1].title}: not within {timeout_s} s")
            self.take_in(TICK_S)

    def go_on(self, seconds: float) -> None:
        """Leave all processes undisturbed for `seconds`."""
        until_ms = now_ms() + int(seconds * 1000)
        while (left_ms := until_ms - now_ms()) > 0:
            self.take_in(min(TICK_S, left_ms / 1000))
        self.take_in(timeout_s=0)

    def start_server(self) -> None:
        """Start the server, and make the topic if it is the first time."""
        try:
            self.server.start()
        except NotStarted as error:
            raise RunFailed(f"the server did not start: {error}") from error
        if not self.scene.address:
            self.server.create_topic(TOPIC, PARTITIONS)
        self.scene.server, self.scene.address = "ready", self.server.bootstrap

    def kill_server(self) -> None:
        """Send SIGKILL to the server."""
        self.look()
        self._before = self.scene.rebalances
        self.server.kill()
        self.scene.server = "killed"

    def take_in(self, timeout_s: float) -> None:
        """Wait at most `timeout_s` for an event, apply all events in the inbox, and look at the group."""
        try:
            event = self.workers.inbox.get(block=timeout_s > 0, timeout=timeout_s or None)
            while True:
                self.scene.apply(event)
                event = self.workers.inbox.get_nowait()
        except Empty:
            pass
        looks = self.scene.looks
        if self.scene.server == "ready" and not (looks and now_ms() - looks[-1].asked_ms < LOOK_EVERY_MS):
            self.look()
        self.scene.at_ms = now_ms()
        self.screen.show(self.scene)
        if self.scene.failure:
            raise RunFailed(self.scene.failure)

    def look(self) -> None:
        """Ask the server for the group's state and offsets, and why it has rebalanced."""
        server, asked_ms = self.server, now_ms()
        try:
            group = server.describe_group(GROUP)
            committed, ends = server.offsets(GROUP), server.end_offsets(TOPIC)
            self.scene.rebalances = [*self._before, *server.rebalances(GROUP)]
        except (Refused, ControlError, TimeoutError) as error:
            raise RunFailed(f"the server does not answer: {error}") from error
        members = {each.client_id: tuple(p.partition for p in each.partitions) for each in group.members}
        look = Look(asked_ms, group.state, members, by_partition(committed), by_partition(ends))
        self.scene.looks.append(look)
        victim = self.scene.workers.get(VICTIM)
        if victim and not victim.lives and VICTIM in members:
            self.still = members_panel(self.scene, NARROW)


def by_partition(offsets: dict[TopicPartition, int]) -> dict[int, int]:
    """The offsets by the partitions' numbers."""
    return {at.partition: offset for at, offset in offsets.items()}


def interrupt(number: int, frame: object) -> None:
    """End the run, because a signal has come. Further signals do not interrupt the clean-up."""
    for each in INTERRUPTS:
        signal.signal(each, signal.SIG_IGN)
    raise RunInterrupted(number)


def demonstrate(*, spark: bool, steady_s: float, svg: Path | None) -> int:
    """Play one run on this terminal. Returns the exit status."""
    console = Console()
    for number in INTERRUPTS:
        signal.signal(number, interrupt)
    with ExitStack() as opened:
        scratch = TemporaryDirectory(prefix="kshim-demo-", ignore_cleanup_errors=True)
        directory = Path(opened.enter_context(scratch))
        workers, server = Workers(directory), Kshim(directory, 1, FLUSHED)
        opened.callback(server.close)
        opened.callback(workers.close)
        run = Run(server, workers, Screen(console))
        try:
            run.play_on_screen(steady_s, spark)
        except RunInterrupted as interrupted:
            console.print("stopped")
            return 128 + int(interrupted.args[0])
    if svg:
        save_svg(run.still, run.scene, svg)
    return PASSED if report(console, run.scene) else FAILED
