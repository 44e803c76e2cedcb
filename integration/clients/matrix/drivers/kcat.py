"""A driver of kcat: each call runs the command, and a consumer is a process of it until it is closed.

kcat has no calls of an administrator; kafka-python creates the topics of the scenarios.
"""

from __future__ import annotations

import itertools
import json
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from integration.clients.matrix.drivers.consumers import Options
from integration.clients.matrix.drivers.lines import POLL_S, Cannot, serve

KCAT = ("setpriv", "--pdeathsig", "KILL", "kcat")
"""A killed driver takes its processes with it."""
TIMEOUT_S = 30
RECORD_END, KEY_END = "\x1e", "\x1f"
INPUT_CHARACTERS = 1024
"""kcat reads so many together; it passes over empty records."""
ASSIGNORS = {"range", "roundrobin", "cooperative-sticky"}
DELIVERED = re.compile(r"% Message delivered to partition (\d+) \(offset (-?\d+)\)")
REBALANCED = re.compile(r"% Group .* rebalanced.*: (assigned|revoked|incremental \w+)\b.*: (.*)")
KINDS = {
    "assigned": "assigned",
    "revoked": "revoked",
    "incremental assignment": "assigned",
    "incremental revoke": "revoked",
}
PARTITION = re.compile(r"(\S+) \[(\d+)\]")
END = re.compile(r"\[\d+\] offset (-?\d+)")
EARLIEST, LATEST = -2, -1
EVERY = {"isolation.level": "read_uncommitted"}


class KcatError(Exception):
    """kcat ended with an error; the text is what it printed."""


class Consuming:
    """A process that consumes, and what it has printed."""

    def __init__(self, arguments: list[str], start: str | None = None) -> None:
        self.arguments = arguments
        self.seen: list[list[Any]] = []
        self.owned: set[tuple[str, int]] = set()
        self.at_end = False
        self.records: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._errors: list[str] = []
        self._process = subprocess.Popen(
            [*KCAT, *(("-o", start) if start else ()), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._read, self._note)]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self.records.put(json.loads(line))

    def _note(self) -> None:
        for line in self._process.stderr or ():
            if told := REBALANCED.match(line):
                self._rebalanced(KINDS[told[1]], told[2])
            elif line.startswith("% Reached end of topic"):
                self.at_end = True
            elif "ERROR" in line:
                self._errors.append(line)
                sys.stderr.write(line)

    def _rebalanced(self, kind: str, text: str) -> None:
        partitions = {(topic, int(number)) for topic, number in PARTITION.findall(text)}
        self.owned = self.owned | partitions if kind == "assigned" else self.owned - partitions
        self.seen.append([kind, sorted([*each] for each in partitions)])

    def check(self) -> None:
        """Raise KcatError if the process has ended by itself."""
        if self._process.poll() is not None:
            raise KcatError("".join(self._errors) or f"status {self._process.returncode}")

    def close(self) -> None:
        """End it as a terminal does: it leaves its group."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(TIMEOUT_S)
        for thread in self._threads:
            thread.join()


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not come")
        time.sleep(POLL_S)


class Kcat:
    """The calls."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._consumers: dict[str, list[Consuming]] = {}

    def hello(self) -> list[str]:
        (version,) = re.findall(r"Version (\S+)", self._run(["-V"]).stdout)
        return ["kcat", version]

    def _run(self, arguments: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*KCAT, *arguments], input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        if done.returncode != 0:
            raise KcatError(done.stderr)
        return done

    # ---- records

    def produce(
        self,
        topic: str,
        records: list[dict[str, Any]],
        acks: int = -1,
        compression: str = "none",
        idempotent: bool = False,
    ) -> list[list[int]]:
        settings = {
            "acks": acks,
            "compression.codec": compression,
            "enable.idempotence": str(idempotent).lower(),
        }
        found = []
        for arguments, together in alike(records):
            command = [*self._sending(topic), *options(settings), *arguments]
            found += delivered(self._run(command, lines_of(together)).stderr, together)
        return found

    def _sending(self, topic: str) -> list[str]:
        delimiters = ["-D", RECORD_END, "-K", KEY_END]
        return ["-P", "-b", self._bootstrap, "-t", topic, *delimiters, "-vvv"]

    def transact(
        self,
        id: str,
        records: list[list[Any]],
        end: str,
        group: str | None = None,
        offsets: list[list[Any]] | None = None,
    ) -> None:
        """A transaction is one process; what interrupts it aborts the transaction."""
        if offsets:
            raise Cannot("no offsets in a transaction")
        (topic,) = {topic for topic, _ in records}
        ((arguments, together),) = alike([record for _, record in records])
        command = [*self._sending(topic), *options({"transactional.id": id}), *arguments]
        if end == "commit":
            delivered(self._run(command, lines_of(together)).stderr, together)
        else:
            self._abort(command, topic, together)

    def _abort(self, command: list[str], topic: str, records: list[dict[str, Any]]) -> None:
        """Interrupt the process when the broker has all records."""
        partition = records[0]["partition"]
        before = self._offset(topic, partition, LATEST)
        process = subprocess.Popen(
            [*KCAT, *command], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdin is not None
        process.stdin.write(lines_of(records) + RECORD_END * INPUT_CHARACTERS)
        process.stdin.flush()
        wait_for(lambda: self._count(topic, partition, before) == len(records), "the records")
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=TIMEOUT_S)[1]
        if "Aborting transaction" not in told:
            raise KcatError(told)

    def _count(self, topic: str, partition: int, start: int) -> int:
        """Records from that offset on, of open transactions as well."""
        where = ["-C", "-b", self._bootstrap, "-t", topic, "-p", str(partition), "-o", str(start), "-e"]
        found = self._run([*where, *options(EVERY), "-f", "%o\n"])
        return len(found.stdout.splitlines())

    # ---- consumers

    def open(self, name: str, **asked: Any) -> None:
        wanted = Options(**asked)
        wanted.need(ASSIGNORS)
        if wanted.commit_on_revoke:
            raise Cannot("no listeners")
        settings: dict[str, Any] = {
            "auto.offset.reset": wanted.reset,
            "enable.auto.commit": str(wanted.auto_commit).lower(),
            "isolation.level": wanted.isolation,
            "max.poll.interval.ms": wanted.max_poll_interval_ms,
            "partition.assignment.strategy": ",".join(wanted.assignors),
            "session.timeout.ms": wanted.session_timeout_ms,
            "heartbeat.interval.ms": wanted.heartbeat_interval_ms,
            "topic.metadata.refresh.interval.ms": 500,
            **({"group.instance.id": wanted.instance} if wanted.instance else {}),
        }
        common = ["-b", self._bootstrap, "-J", "-u", "-E", *options(settings)]
        if wanted.group is not None and wanted.partitions is None:
            subscribed = [wanted.pattern] if wanted.pattern else wanted.topics
            self._consumers[name] = [Consuming(["-G", wanted.group, *common, *subscribed])]
            return
        where = [["-t", topic, "-p", str(number)] for topic, number in wanted.partitions or ()]
        where += [["-t", topic] for topic in wanted.topics]
        start = {"earliest": "beginning", "latest": "end"}[wanted.reset]
        self._consumers[name] = [Consuming(["-C", *common, *each], start) for each in where]

    def take(self, name: str, count: int, timeout_ms: int) -> list[dict[str, Any]]:
        deadline = time.monotonic() + timeout_ms / 1000
        found: list[dict[str, Any]] = []
        for each in itertools.cycle(self._consumers[name]):
            if len(found) == count or time.monotonic() > deadline:
                return found
            try:
                found.append(record_of(each.records.get(timeout=POLL_S)))
            except queue.Empty:
                each.check()
        return found

    def events(self, name: str) -> list[list[Any]]:
        (member,) = self._consumers[name]
        seen, member.seen = member.seen, []
        return seen

    def assignment(self, name: str) -> list[list[Any]]:
        (member,) = self._consumers[name]
        member.check()
        return sorted([*each] for each in member.owned)

    def seek(self, name: str, topic: str, partition: int, offset: int | str) -> None:
        """Another process begins there: kcat seeks when it starts."""
        (member,) = self._consumers[name]
        if member.owned != {(topic, partition)}:
            raise Cannot("one offset is for all partitions")
        member.close()
        again = Consuming(member.arguments, start=str(offset))
        self._consumers[name] = [again]
        if offset == "end":  # It asks for the end only when it has the partition.
            wait_for(lambda: again.at_end or again.check(), "the end")

    def seek_to_time(self, name: str, topic: str, partition: int, timestamp_ms: int) -> None:
        self.seek(name, topic, partition, self._offset(topic, partition, timestamp_ms))

    def close(self, name: str) -> None:
        for each in self._consumers.pop(name):
            each.close()

    # ---- topics

    def create_topic(self, topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self._bootstrap)
        try:
            admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs or {})])
        finally:
            admin.close()

    def topics(self) -> list[str]:
        return sorted(each["topic"] for each in self._metadata([]))

    def _metadata(self, which: list[str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            self._run(["-L", "-b", self._bootstrap, "-J", *which]).stdout
        )["topics"]
        return found

    def ends(self, topic: str) -> list[list[int]]:
        (described,) = self._metadata(["-t", topic])
        numbers = sorted(each["partition"] for each in described["partitions"])
        return [[self._offset(topic, each, at) for at in (EARLIEST, LATEST)] for each in numbers]

    def _offset(self, topic: str, partition: int, timestamp_ms: int) -> int:
        asked = ["-Q", "-b", self._bootstrap, *options(EVERY), "-t", f"{topic}:{partition}:{timestamp_ms}"]
        (offset,) = END.findall(self._run(asked).stdout)
        return int(offset)


def options(settings: dict[str, Any]) -> list[str]:
    return [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]


def alike(records: list[dict[str, Any]]) -> Iterator[tuple[list[str], list[dict[str, Any]]]]:
    """Records that one process sends, and its arguments: it gives all one partition and one set of headers,
    and takes every empty key or value for null, or none."""
    for record in records:
        if record.get("timestamp") is not None:
            raise Cannot("no timestamp of a record")
        if "" in (texts := (record.get("key"), record["value"])) and None in texts:
            raise Cannot("an empty text beside a null")

    def arguments(record: dict[str, Any]) -> list[str]:
        partition = [] if record.get("partition") is None else ["-p", str(record["partition"])]
        headers = [part for name, value in record.get("headers", ()) for part in ("-H", f"{name}={value}")]
        nulls = ["-Z"] if None in (record.get("key"), record["value"]) else []
        return [*partition, *headers, *nulls]

    for command, together in itertools.groupby(records, arguments):
        yield command, list(together)


def lines_of(records: list[dict[str, Any]]) -> str:
    return "".join(
        f"{record.get('key') or ''}{KEY_END}{record['value'] or ''}{RECORD_END}" for record in records
    )


def delivered(told: str, records: list[dict[str, Any]]) -> list[list[int]]:
    """[[partition, offset], …] of what kcat says."""
    found = [[int(number), max(int(offset), -1)] for number, offset in DELIVERED.findall(told)]
    if len(found) != len(records):
        raise KcatError(told)
    return found


def record_of(printed: dict[str, Any]) -> dict[str, Any]:
    headers = iter(printed.get("headers", ()))
    return {
        **{name: printed[name] for name in ("topic", "partition", "offset", "key")},
        "value": printed["payload"],
        "headers": [[name, next(headers)] for name in headers],
        "timestamp": printed["ts"],
    }


if __name__ == "__main__":
    serve(Kcat(sys.argv[1]))
