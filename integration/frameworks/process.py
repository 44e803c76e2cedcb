"""A program in Java as a process: what it has printed, and signals to end it."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from integration.support.awaiting import wait_until

STOP_TIMEOUT_S = 60
FRUGAL = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LOGGED = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients=warn",
    "-Dorg.slf4j.simpleLogger.showShortLogName=true",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)


class Program:
    """A running program. Its temporary files are in `directory`, and its log, which several may share."""

    def __init__(self, class_path: str, main: str, arguments: Sequence[str], directory: Path) -> None:
        self.directory = directory
        self.lines: list[str] = []
        """What it has printed so far."""
        directory.mkdir(exist_ok=True)
        self._log_path = directory / "log"
        temporary = f"-Djava.io.tmpdir={directory}"
        with self._log_path.open("a") as log:
            self._process = subprocess.Popen(
                ["java", *FRUGAL, *LOGGED, temporary, "-cp", class_path, main, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def stop(self) -> None:
        """As Ctrl-C: the program takes its leave."""
        self._process.terminate()
        wait_until(lambda: not self.running, STOP_TIMEOUT_S, self.report)
        self._reader.join(STOP_TIMEOUT_S)

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, nobody is told."""
        self._process.kill()
        self._process.wait()
        self._reader.join(STOP_TIMEOUT_S)

    def freeze(self) -> None:
        """SIGSTOP: it stands still, and does not know."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def report(self) -> str:
        """What a failed test shows about it."""
        log = self._log_path.read_text().splitlines()[-60:]
        title = f"-- {self.directory.name}, exit status {self._process.poll()}"
        return "\n".join([title, *self.lines[-10:], "log:", *log])
