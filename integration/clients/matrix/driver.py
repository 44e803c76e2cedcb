"""The scenarios' end of a driver: a process that answers one line of JSON with another."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from integration.support.awaiting import wait_until

ROOT = Path(__file__).parents[3]
CLASSIC, CONSUMER = "classic", "consumer"
"""A member's group.protocol."""
ANSWER_S = 60
"""No call of a scenario may take longer."""


class ClientError(Exception):
    """The client failed. `name`: the error by the client's name for it."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


class Cannot(Exception):
    """The client has no such call."""


class Driver:
    """One client in a process of its own. Every call of the protocol is a method: `driver.take("c", …)`."""

    def __init__(
        self, command: Sequence[str], bootstrap: str, environment: dict[str, str], protocol: str = CLASSIC
    ) -> None:
        self._protocol = protocol
        self._process = subprocess.Popen(
            [*command, bootstrap],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            text=True,
        )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def __getattr__(self, name: str) -> Any:
        return lambda **arguments: self.ask(name, **arguments)

    def open(self, **arguments: Any) -> None:
        """Begin to consume, with the client's group.protocol."""
        protocol = {} if self._protocol == CLASSIC else {"protocol": self._protocol}
        self.ask("open", **protocol, **arguments)

    def events(self, *, name: str) -> list[Any]:
        """The events of a consumer's listener since the last call: kinds and partitions."""
        return [event[:2] for event in self.timed_events(name=name)]

    def timed_events(self, *, name: str) -> list[Any]:
        """Like `events`, with times in ms since 1970, which only drivers in Python, Java and Go report."""
        return list(self.ask("events", name=name))

    def create_topic(self, *, topic: str, partitions: int = 1, **arguments: Any) -> None:
        """Create a topic, and wait until the client finds all its leaders: Apache Kafka answers earlier, and
        not every client then waits for them. Raises ClientError.
        """
        self.ask("create_topic", topic=topic, partitions=partitions, **arguments)

        def is_led() -> bool:
            try:
                return len(self.ask("ends", topic=topic)) == partitions
            except ClientError:
                return False
            except Cannot:
                return True

        wait_until(is_led, ANSWER_S, f"the leaders of {topic}")

    def ask(self, do: str, **arguments: Any) -> Any:
        """The answer to one call. Raises ClientError, Cannot."""
        self.begin(do, **arguments)
        return self.answer()

    def begin(self, do: str, **arguments: Any) -> None:
        """Send a call, whose answer `answer` will give."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """The answer to the earliest call that has none. Raises ClientError, Cannot."""
        try:
            line = self._answers.get(timeout=ANSWER_S)
        except queue.Empty:
            raise AssertionError(f"no answer within {ANSWER_S} s") from None
        assert line, f"the driver ended with status {self._process.wait()}"
        answer = cast(dict[str, Any], json.loads(line))
        if "error" in answer:
            raise ClientError(answer["error"], answer.get("message", ""))
        if "cannot" in answer:
            raise Cannot(answer["cannot"])
        return answer["is"]

    def crash(self) -> None:
        """Kill the driver: it closes nothing, and its members do not leave."""
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        """Stop the driver's process, as a debugger does: its connections stay open."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the process go on."""
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """End it, if it still runs."""
        assert self._process.stdin is not None
        if self._process.poll() is None:
            self._process.stdin.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self.crash()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")
