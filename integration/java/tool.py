"""One of Apache's verifiable clients as a process, which prints each event as a line of JSON."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from integration.support.awaiting import wait_until


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


class Tool:
    """A running tool, and what it has printed so far, each line with the time at which it came."""

    def __init__(self, class_path: str, name: str, options: Sequence[str], log_path: Path) -> None:
        self.name = name
        self.said: list[tuple[float, dict[str, Any]]] = []
        self._log_path = log_path
        with log_path.open("w") as log:
            self._process = subprocess.Popen(
                [*java(class_path, name), *options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self.said.append((time.monotonic(), json.loads(line)))

    def facts(self, name: str) -> list[dict[str, Any]]:
        return [fact for _, fact in list(self.said) if fact["name"] == name]

    def stop(self, timeout_s: float = 30) -> None:
        """As Ctrl-C: the tool closes its client."""
        self._process.terminate()
        wait_until(lambda: self._process.poll() is not None, timeout_s, self.report)
        self._reader.join(timeout_s)

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def report(self) -> str:
        log = self._log_path.read_text().splitlines()[-40:]
        return "\n".join([f"-- {self.name} ({self._process.poll()}), {len(self.said)} facts, log:", *log])
