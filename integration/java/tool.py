"""One of Apache's verifiable clients as a process: it says what happens as one JSON object a line."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from integration.awaiting import wait_until


class Tool:
    """What it said so far, each line with the time at which it came."""

    def __init__(self, class_path: str, name: str, options: Sequence[str], log_path: Path) -> None:
        self.name = name
        self.said: list[tuple[float, dict[str, Any]]] = []
        self._log_path = log_path
        java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", class_path]
        with log_path.open("w") as log:
            self._process = subprocess.Popen(
                [*java, f"org.apache.kafka.tools.{name}", *options],
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
        """As Ctrl-C: it closes its client."""
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
