"""One of Apache's verifiable clients as a process, which prints each event as a line of JSON."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from integration.support.process import Process


def java(class_path: str, name: str) -> list[str]:
    """The command that runs a class of `org.apache.kafka.tools`."""
    frugal = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    return ["java", *frugal, "-cp", class_path, f"org.apache.kafka.tools.{name}"]


def run_to_end(class_path: str, name: str, *options: str, timeout_s: float = 60) -> tuple[int, str]:
    """The exit status of a tool that ends by itself, and what it printed except warnings about its log."""
    done = subprocess.run(
        [*java(class_path, name), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    lines = done.stdout.splitlines(keepends=True)
    return done.returncode, "".join(line for line in lines if not re.search("SLF4J|[Ll]og4j|WARN", line))


class Tool(Process):
    """A running tool, and what it has printed so far, each line with the time at which it came."""

    def __init__(self, class_path: str, name: str, options: Sequence[str], log_path: Path) -> None:
        self.name = name
        self.said: list[tuple[float, dict[str, Any]]] = []
        super().__init__([*java(class_path, name), *options], log_path)

    def _hear(self, line: str) -> None:
        if line.startswith("{"):
            self.said.append((time.monotonic(), json.loads(line)))

    def facts(self, name: str) -> list[dict[str, Any]]:
        return [fact for _, fact in list(self.said) if fact["name"] == name]

    def report(self) -> str:
        title = f"-- {self.name} ({self._process.poll()}), {len(self.said)} facts, log:"
        return "\n".join([title, *self._log_lines(40)])
