"""Apache Kafka's command-line tools, many runs in one JVM, which takes a second to start."""

from __future__ import annotations

import base64
import subprocess
from dataclasses import dataclass
from pathlib import Path

from integration.apache_kafka.jars import RELEASE

SOURCE = Path(__file__).with_name("RunTools.java")
CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CONFIGS = ("org.apache.kafka.tools" if RELEASE >= "4.4" else "kafka.admin") + ".ConfigCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"


@dataclass(frozen=True)
class Printed:
    """The result of one run."""

    status: int
    text: str


class Tools:
    """One JVM. Not thread-safe."""

    def __init__(self, class_path: str) -> None:
        self._process = subprocess.Popen(
            ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", class_path, str(SOURCE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, tool: str, *arguments: str) -> Printed:
        """Run one tool, which must end by itself."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join((tool, *arguments)) + "\n")
        self._process.stdin.flush()
        status, _, text = self._process.stdout.readline().partition("\t")
        return Printed(int(status), base64.b64decode(text).decode())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
