"""The instances of a program: processes that are started, killed, frozen and asked to end.

Each has a session of its own. So Ctrl-C reaches only the torture, and a signal also reaches the program's
children: those of a shell, or of a build tool.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

OnLine = Callable[[str, str, float], None]
"""Called with the instance's name, a line of its standard output, and when it was read, in ms."""
END_S = 5.0
"""How long a program may take to end after SIGTERM."""
SAID_LINES = 12
BEAT_S = 0.02
STALL_MS = 60.0
"""A pulse that is later than this shows a process that stood still."""


class CannotRun(Exception):
    """The command cannot be started. str() is one line for the user."""


class Instance:
    """One instance, in one process after the other."""

    def __init__(
        self, name: str, command: Sequence[str], env: Mapping[str, str], directory: Path, on_line: OnLine
    ) -> None:
        """name: such as "c1". env: added to this process's environment. directory: gets the logs."""
        self.name = name
        self._command, self._env, self._on_line = command, env, on_line
        self.log = directory / f"{name}.log"
        """All that the program said, except its report."""
        self._process: subprocess.Popen[str] | None = None
        self._readers: list[threading.Thread] = []
        self.is_frozen = False
        self.is_wanted = False
        """True from a start until the torture itself ends the process."""
        self.started_ms = 0.0

    def start(self) -> None:
        """Start a process. The last one must have ended. Raises CannotRun."""
        assert not self.runs
        try:
            with self.log.open("a") as log:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=os.environ | self._env,
                    start_new_session=True,
                    text=True,
                    errors="replace",
                )
        except OSError as error:
            raise CannotRun(f"cannot run {self._command[0]}: {error.strerror}") from None
        self.is_wanted, self.is_frozen, self.started_ms = True, False, now_ms()
        assert self._process.stdout is not None
        reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._readers.append(reader)
        reader.start()

    @property
    def runs(self) -> bool:
        """True if the process has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None while the process runs, and before the first start."""
        return None if self._process is None else self._process.poll()

    def kill(self) -> None:
        """Send SIGKILL, and wait until the process is gone. Does nothing if it has ended."""
        self.is_wanted = False
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def ask_to_end(self) -> None:
        """Send SIGTERM, also to a frozen process."""
        self.is_wanted = False
        self.go_on()
        self._signal(signal.SIGTERM)

    def freeze(self) -> None:
        """Make the process stand still."""
        self._signal(signal.SIGSTOP)
        self.is_frozen = True

    def go_on(self) -> None:
        """Make a frozen process go on."""
        self._signal(signal.SIGCONT)
        self.is_frozen = False

    def close(self) -> None:
        """Kill what is left, and read the last lines."""
        self.kill()
        for reader in self._readers:
            reader.join(END_S)

    def last_words(self) -> list[str]:
        """The last lines that the program said."""
        if not self.log.exists():
            return []
        return [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()][
            -SAID_LINES:
        ]

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and (self.runs or number is signal.SIGKILL):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def _read(self, output: IO[str]) -> None:
        with suppress(ValueError), output:
            for line in output:
                if line.endswith("\n"):  # a killed process may leave half a line
                    self._on_line(self.name, line.rstrip("\n"), now_ms())


class Pulse:
    """Notes when this process stood still, because the machine was too busy: lines were read late then."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._stalls: list[tuple[float, float]] = []
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Note nothing more."""
        self._over.set()

    def late_ms(self, at_ms: float) -> float:
        """How long this process may have stood still before it did something at that time."""
        earliest_ms = at_ms
        for began_ms, ended_ms in reversed(self._stalls):
            if began_ms < earliest_ms <= ended_ms + STALL_MS:
                earliest_ms = began_ms
        return at_ms - earliest_ms

    def _beat(self) -> None:
        before_ms = now_ms()
        while not self._over.wait(BEAT_S):
            at_ms = now_ms()
            if at_ms - before_ms > BEAT_S * 1000 + STALL_MS:
                self._stalls.append((before_ms, at_ms))
            before_ms = at_ms


def end_all(instances: Sequence[Instance], timeout_s: float = END_S) -> list[str]:
    """Ask all instances to end, and kill those that do not. Return the names of those that were killed."""
    for each in instances:
        if each.runs:
            each.ask_to_end()
    end_s = time.monotonic() + timeout_s
    while any(each.runs for each in instances) and time.monotonic() < end_s:
        time.sleep(0.02)
    late = [each.name for each in instances if each.runs]
    for each in instances:
        each.close()
    return late


def now_ms() -> float:
    """The machine's time in ms since 1970."""
    return time.time() * 1000
