"""The compared servers: kshim and Apache Kafka, which this module starts, or a server at an address.

kshim may also stand in front of Apache Kafka, and be compared with that Kafka, reached directly.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from integration import apache_kafka

ROOT = Path(__file__).parents[1]
MEMORY = "memory"
"""In place of a flush.policy: kshim keeps its data in memory."""
KSHIM, APACHE_KAFKA, UPSTREAM = "kshim", "apache-kafka", "upstream"
READY_TIMEOUT_S = 120
STOP_TIMEOUT_S = 60
POLL_S = 0.002

Settings = Mapping[str, Mapping[str, str]]
"""Properties to start with, by the kind of the server."""


class ServerFailed(Exception):
    """A server did not start; str() says what it printed last."""


@dataclass(frozen=True)
class Target:
    """A running server's address and settings, for a generator."""

    bootstrap: str
    pid: int = 0
    """0 if it is not on this machine."""
    data_dir: str = ""
    flush: str = ""
    """kshim's flush.policy, or MEMORY."""


@dataclass(frozen=True)
class Running:
    """A server that was started here."""

    target: Target
    began_at: float
    """By time.perf_counter()."""
    started_s: float
    """From the start of its process until clients can connect."""


@dataclass(frozen=True)
class Side:
    """One that is compared. It may be started more than once."""

    kind: str
    """`kshim`, `apache-kafka`, `upstream`, or an address."""
    flush: str = ""
    """kshim's flush.policy, or MEMORY."""
    is_in_front: bool = False
    """Whether it is kshim in front of the upstream."""
    samples: Path | None = None
    """The file for the stacks of kshim, if they are to be noted."""

    @property
    def name(self) -> str:
        return {APACHE_KAFKA: "Apache Kafka", UPSTREAM: "directly"}.get(self.kind, self.kind)

    @property
    def label(self) -> str:
        """The name, and how it flushes."""
        return f"{self.name} {self.flush}".rstrip()

    @property
    def is_started_here(self) -> bool:
        return self.kind in (KSHIM, APACHE_KAFKA, UPSTREAM)

    @property
    def folder(self) -> str:
        """A name for a directory of its own."""
        return f"{self.kind}-{self.flush}".replace(":", "-")

    @contextmanager
    def serving(
        self, data_dir: Path, settings: Settings, *, quick_start: bool = False, upstream: str = ""
    ) -> Iterator[Running]:
        """Start a server on this directory, and stop it at the end.

        With `quick_start` Apache Kafka's JVM has the options with which it starts soonest, else those of its
        start script. upstream: what kshim is to stand in front of. Raises ServerFailed.
        """
        data_dir.parent.mkdir(parents=True, exist_ok=True)
        log = data_dir.with_name(f"{data_dir.name}.log")
        began_at = time.perf_counter()
        with log.open("ab") as stderr:
            process = subprocess.Popen(
                self._command(data_dir, settings, quick_start, upstream),
                env=_environment(),
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        try:
            if self.kind != KSHIM:
                began_at = _became_java(process)
            bootstrap = _ready(process, log)
            started_s = time.perf_counter() - began_at
            target = Target(bootstrap, process.pid, str(data_dir), self.flush)
            yield Running(target, began_at, started_s)
        finally:
            _stop(process)

    def _command(self, data_dir: Path, settings: Settings, quick_start: bool, upstream: str) -> list[str]:
        properties = dict(settings.get(self.kind, {}))
        if self.flush == MEMORY:
            data_dir = Path(":memory:")
        elif self.flush:
            properties["flush.policy"] = self.flush
        options = [word for name, value in properties.items() for word in ("--set", f"{name}={value}")]
        if self.kind == KSHIM:
            command = [sys.executable, "-m", "kshim"]
            if self.samples is not None:
                command = [sys.executable, "-m", "benchmarks.sampled", str(self.samples)]
            if upstream:
                options += ["--upstream", upstream]
        else:
            command, options = apache_kafka.COMMAND, [*options, *([] if quick_start else ["--benchmark"])]
        return [*command, "serve", "--listen", "127.0.0.1:0", "--data-dir", str(data_dir), *options]


@contextmanager
def all_serving(sides: Sequence[Side], directory: Path, settings: Settings) -> Iterator[dict[Side, Target]]:
    """Every side, each with a new data directory; there is one upstream for all. Raises ServerFailed."""
    with ExitStack() as stack:
        targets = {}
        upstream = Side(UPSTREAM)
        if any(side.is_in_front or side == upstream for side in sides):
            running = stack.enter_context(upstream.serving(directory / upstream.folder / "data", settings))
            targets[upstream] = running.target
        for side in sides:
            if not side.is_started_here:
                targets[side] = Target(side.kind)
            elif side not in targets:
                behind = targets[upstream].bootstrap if side.is_in_front else ""
                data_dir = directory / side.folder / "data"
                targets[side] = stack.enter_context(side.serving(data_dir, settings, upstream=behind)).target
        yield targets


def _environment() -> dict[str, str]:
    """This process's, but kshim keeps its compiled modules, as it does where it is installed."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT)}


def _became_java(process: subprocess.Popen[bytes]) -> float:
    """The start of Apache Kafka. Before, the process was Python, which formatted the directory."""
    comm = Path(f"/proc/{process.pid}/comm")
    while process.poll() is None and comm.read_text() != "java\n":
        time.sleep(POLL_S)
    return time.perf_counter()


def _ready(process: subprocess.Popen[bytes], log: Path) -> str:
    """The address in the line that a server prints as soon as clients can connect. Raises ServerFailed."""
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], READY_TIMEOUT_S)
    words = process.stdout.readline().decode().split() if readable else []
    if words[:2] != ["kshim", "ready"]:
        last = log.read_text(errors="replace").splitlines()[-1:]
        raise ServerFailed(f"the server did not start: {' '.join(last) or 'it printed nothing'}")
    return words[2]


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
