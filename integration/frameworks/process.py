"""A program in Java as a process, and what it has printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from integration.support.process import Process

STOP_TIMEOUT_S = 60
FRUGAL = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LOGGED = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients=warn",
    "-Dorg.slf4j.simpleLogger.showShortLogName=true",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)


class Program(Process):
    """A running program. Its temporary files are in `directory`, and its log, which several may share."""

    def __init__(self, class_path: str, main: str, arguments: Sequence[str], directory: Path) -> None:
        self.directory = directory
        self.lines: list[str] = []
        """What it has printed so far."""
        directory.mkdir(exist_ok=True)
        temporary = f"-Djava.io.tmpdir={directory}"
        command = ["java", *FRUGAL, *LOGGED, temporary, "-cp", class_path, main, *arguments]
        super().__init__(command, directory / "log", mode="a")

    def _hear(self, line: str) -> None:
        self.lines.append(line)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        super().stop(timeout_s)

    def report(self) -> str:
        """The process's output, for a failed test."""
        title = f"-- {self.directory.name}, exit status {self._process.poll()}"
        return "\n".join([title, *self.lines[-10:], "log:", *self._log_lines(60)])
