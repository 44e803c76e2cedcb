"""Each cell of the table in docs/commands.md is run: against kshim, and against Apache Kafka."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from integration.apache_kafka import tools
from integration.apache_kafka.tools import Tools
from integration.commands.running import ROOT, Kshim
from integration.support.toolchain import Missing, or_skip

PAGE = ROOT / "docs" / "commands.md"
LEAST_TASKS = 20
JAVA = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
NO_COMMAND = "–"
FILES = {
    "lines.txt": "one\ntwo\n",
    "pairs.txt": "ann:1\nbob:2\n",
    "gone.txt": "ann:NULL\n",
    "empty.txt": "ann:\n",
}
MAIN_CLASSES = {
    "kafka-topics.sh": tools.TOPICS,
    "kafka-configs.sh": tools.CONFIGS,
    "kafka-consumer-groups.sh": tools.CONSUMER_GROUPS,
    "kafka-console-consumer.sh": tools.CONSOLE_CONSUMER,
    "kafka-console-producer.sh": "org.apache.kafka.tools.ConsoleProducer",
}
ALONE = ("kafka-topics.sh", "kafka-console-producer.sh")
"""Tools that run in a JVM of their own: one reads standard input, and one exits twice."""
FUNCTION = 'kshim() { "$PYTHON" -m kshim "$@"; }; set -o pipefail; '
SAME_OUTPUT = ("read all", "read keys", "read the last", "read one", "read from", "read what", "print fields")
"""The beginnings of tasks for which kshim and kcat print the same lines."""


class Task(NamedTuple):
    """A row of the table. A cell is a shell command, or empty."""

    name: str
    kshim: str
    kcat: str
    kafka: str


def tasks() -> list[Task]:
    table = PAGE.read_text().partition("<!-- beside -->")[2].partition("<!-- /beside -->")[0]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.strip().splitlines()[2:]]
    return [Task(*(_cell(cell) for cell in row)) for row in rows]


def _cell(text: str) -> str:
    cell = text.strip().strip("`").replace(r"\|", "|")
    return "" if cell == NO_COMMAND else cell


@pytest.fixture(scope="module")
def jvm(class_path: str) -> Iterator[Tools]:
    found = Tools(class_path)
    yield found
    found.close()


class Beside:
    """Runs cells in a directory with the table's files."""

    def __init__(self, kshim: Kshim, jvm: Tools, class_path: str) -> None:
        self._kshim = kshim
        self._jvm = jvm
        self._class_path = class_path
        for name, text in FILES.items():
            (kshim.directory / name).write_text(text)

    def shell(self, cell: str) -> str:
        """Run a cell of kshim or kcat, which must succeed, and return what it prints."""
        done = self._run(["bash", "-c", FUNCTION + cell])
        assert done.returncode == 0, (cell, done.stderr.decode())
        return done.stdout.decode()

    def kafka(self, cell: str) -> None:
        """Run a cell of Apache Kafka's tools, with topics and a group of its own."""
        own = re.sub(r"\b(orders|users|readers)\b", r"\1-apache", cell.replace("$B", self._kshim.bootstrap))
        command, _, file = own.partition(" <")
        name, *arguments = shlex.split(command)
        if name in ALONE:
            stdin = (self._kshim.directory / file).read_bytes() if file else b""
            done = self._run([*JAVA, "-cp", self._class_path, MAIN_CLASSES[name], *arguments], stdin)
            assert done.returncode == 0, (cell, done.stderr.decode())
        else:
            printed = self._jvm.run(MAIN_CLASSES[name], *arguments)
            assert printed.status == 0, (cell, printed.text)

    def _run(self, command: list[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        environment = {**self._kshim.environment, "B": self._kshim.bootstrap, "PYTHON": self._kshim.python}
        return subprocess.run(
            command,
            cwd=self._kshim.directory,
            env=environment,
            input=stdin,
            capture_output=True,
            timeout=120,
            check=False,
        )


def test_the_table_has_enough_tasks() -> None:
    assert len(tasks()) >= LEAST_TASKS
    assert all(task.kshim for task in tasks())
    assert all(any(task.name.startswith(each) for task in tasks()) for each in SAME_OUTPUT)


def test_each_command_does_what_the_others_do(kshim: Kshim, jvm: Tools, class_path: str) -> None:
    with or_skip("kcat"):
        if shutil.which("kcat") is None:
            raise Missing("kcat is not installed")
    beside = Beside(kshim, jvm, class_path)
    for task in tasks():
        printed = beside.shell(task.kshim)
        if task.kcat:
            by_kcat = beside.shell(task.kcat)
            if task.name.startswith(SAME_OUTPUT):
                assert sorted(printed.splitlines()) == sorted(by_kcat.splitlines()), task.name
                assert printed, task.name
        if task.kafka:
            beside.kafka(task.kafka)
    kshim("topic", "delete", "users", "copy", "users-apache")
