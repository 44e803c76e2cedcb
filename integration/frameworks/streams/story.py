"""The parts of a story: instances of the application, a feed of numbers, and the results that came of it."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka import TopicPartition

from integration.frameworks.process import Program
from integration.frameworks.reading import read_to_end, reader
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server
from integration.support.story import Feed

PARTITIONS = 4
TASKS = 2 * PARTITIONS
"""Those that read the input and those that count, one a partition each."""
BUCKETS = 7
PATIENCE_S = 90
SETTINGS = {
    # A killed instance leaves records in an open transaction: with a linger, it sends them when it commits.
    "commit.interval.ms": "300",
    "producer.linger.ms": "0",
    "repartition.purge.interval.ms": "300",
    # A killed instance is missed within seconds. Its transaction is aborted after ten, Streams' default.
    "session.timeout.ms": "4000",
    "heartbeat.interval.ms": "500",
    "reconnect.backoff.max.ms": "200",
}


class Instance(Program):
    """One instance of the application."""

    def facts(self, name: str) -> list[Any]:
        facts = [json.loads(line) for line in list(self.lines)]
        return [fact[name] for fact in facts if name in fact]

    def ask(self, name: str) -> Any:
        told = len(self.facts(name))
        self.tell(name)
        return wait_until(lambda: self.facts(name)[told:], PATIENCE_S, self.report)[0]

    def tasks(self) -> list[str]:
        """Its active tasks, as "SUBTOPOLOGY_PARTITION"."""
        tasks: list[str] = self.ask("tasks")
        return tasks

    def sums(self) -> dict[str, str]:
        """The state that it holds: for each bucket the last number, how many were counted, and their sum."""

        def found() -> dict[str, str] | None:
            answer = self.ask("sums")
            return answer if isinstance(answer, dict) else None  # a text while the state is restored

        return wait_until(found, PATIENCE_S, self.report) or {}


@dataclass(frozen=True)
class Result:
    """A record of the output: the state after `number` was counted."""

    number: int
    count: int
    sum: int


class Results:
    """The committed records of the output, by bucket, in their order."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.by_bucket: dict[str, list[Result]] = {f"bucket {bucket}": [] for bucket in range(BUCKETS)}
        self._consumer = reader(bootstrap, topic, PARTITIONS)

    def poll(self) -> list[int]:
        """Read on, to the end. Returns all numbers so far."""
        for record in read_to_end(self._consumer):
            number, count, total = map(int, record.value.decode().split())
            self.by_bucket[record.key.decode()].append(Result(number, count, total))
        return self.numbers()

    def numbers(self) -> list[int]:
        return [result.number for results in self.by_bucket.values() for result in results]

    def starts(self, topic: str) -> list[int]:
        """The first offset of each partition of any topic."""
        partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
        return list(self._consumer.beginning_offsets(partitions).values())

    def close(self) -> None:
        self._consumer.close()


class Story:
    """One application, which may have any number of instances."""

    def __init__(self, broker: Server, class_path: str, topic: str, guarantee: str, tmp_path: Path) -> None:
        self.input, self.output, self.application = topic, f"{topic}-sums", f"app-of-{topic}"
        self.repartition = f"{self.application}-bucket-repartition"
        self.changelog = f"{self.application}-sums-changelog"
        self.admin = Admin(broker.bootstrap)
        for name in (self.input, self.output):
            self.admin.create_topic(name, PARTITIONS)
        self.feed = Feed(broker.bootstrap, topic, PARTITIONS)
        self.results = Results(broker.bootstrap, self.output)
        self.instances: list[Instance] = []
        self._broker, self._class_path, self._tmp_path = broker, class_path, tmp_path
        self._guarantee = guarantee

    def start(self, name: str, **more: str) -> Instance:
        """Start an instance. One that was started by that name before left its state's directory behind."""
        directory = self._tmp_path / name
        config = {
            **SETTINGS,
            "application.id": self.application,
            "bootstrap.servers": self._broker.bootstrap,
            "client.id": name,
            "processing.guarantee": self._guarantee,
            "state.dir": str(directory / "state"),
            **more,
        }
        options = [f"{key}={value}" for key, value in config.items()]
        instance = Instance(self._class_path, "Sums", [self.input, self.output, *options], directory)
        self.instances.append(instance)
        return instance

    def wait_shared(self, *instances: Instance) -> None:
        """Wait until these instances have an equal number of tasks, and each task is active in one."""

        def shared() -> bool:
            tasks = [instance.tasks() for instance in instances]
            share = TASKS // len(instances)
            return len({*itertools.chain(*tasks)}) == TASKS and all(len(each) == share for each in tasks)

        wait_until(shared, PATIENCE_S, self.report)

    def wait_more(self, count: int = 300) -> None:
        """Wait until `count` more numbers are counted, some of each bucket."""
        before = {bucket: len(results) for bucket, results in self.results.by_bucket.items()}

        def came() -> bool:
            self.results.poll()
            more = [len(self.results.by_bucket[bucket]) - had for bucket, had in before.items()]
            return sum(more) >= count and all(more)

        wait_until(came, PATIENCE_S, self.report)

    def finish(self) -> set[int]:
        """Stop the feed, and wait until all that was fed is counted. Returns it."""
        acknowledged = self.feed.stop()
        assert not self.feed.errors, self.feed.errors[:3]
        assert len(acknowledged) == self.feed.sent
        fed = {int(value.rpartition("-")[2]) for value in acknowledged.values()}

        def counted() -> bool:
            return fed <= set(self.results.poll())

        wait_until(counted, PATIENCE_S, lambda: f"{fed - set(self.results.numbers())}\n{self.report()}")
        for instance in self.instances:
            assert instance.facts("failed") == [], self.report()
        return fed

    def state(self) -> dict[str, Result]:
        """The state of the running instances together; no bucket is in two."""
        found: dict[str, Result] = {}
        for instance in self.instances:
            if instance.running:
                sums = instance.sums()
                assert not found.keys() & sums.keys()
                found |= {bucket: Result(*map(int, text.split())) for bucket, text in sums.items()}
        return found

    def end(self) -> None:
        for instance in self.instances:
            instance.kill()
        self.feed.end()
        self.results.close()
        self.admin.close()

    def report(self) -> str:
        counted = len(self.results.numbers())
        said = f"{self.feed.sent} fed, {counted} counted, {self.feed.errors[:3]}"
        return "\n".join([said, *(instance.report() for instance in self.instances), self._broker.report()])
