"""The parts of a story: a Connect cluster, a source and a sink, and a file that grows."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from pathlib import Path

from integration.frameworks.connect.worker import PATIENCE_S, Refused, Worker
from integration.frameworks.reading import read_to_end, reader
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.ports import Slot
from integration.support.server import Server

FEED_INTERVAL_S = 0.005
PARTITIONS = 2
SINK_TASKS = 2
INTERNAL = ("config", "offset", "status")


class Lines:
    """A file to which numbered lines are appended, on and on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        """How many lines were written; they are the numbers below."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self.path.open("w", buffering=1) as file:
            for number in itertools.count():
                if self._stopping.wait(FEED_INTERVAL_S):
                    return
                file.write(f"{number}\n")
                self.count = number + 1

    def wait_more(self, count: int) -> None:
        target = self.count + count
        wait_until(lambda: self.count >= target, PATIENCE_S, f"{count} more lines")

    def stop(self) -> list[int]:
        self._stopping.set()
        self._thread.join()
        return list(range(self.count))


class Story:
    """One Connect cluster, with a source that reads the lines and a sink that writes them to a file."""

    def __init__(self, broker: Server, class_path: str, topic: str, eos: bool, tmp_path: Path) -> None:
        self.topic, self.group = topic, f"cluster-of-{topic}"
        self.internal = {kind: f"{self.group}-{kind}" for kind in INTERNAL}
        self.source, self.sink = f"source-of-{topic}", f"sink-of-{topic}"
        self.admin = Admin(broker.bootstrap)
        self.lines = Lines(tmp_path / "lines")
        self.workers: dict[str, Worker] = {}
        self._broker, self._class_path, self._tmp_path = broker, class_path, tmp_path
        self._written = tmp_path / "written"
        self._eos = eos
        self._slots: dict[str, Slot] = {}

    # ---- workers

    def start(self, name: str) -> Worker:
        """Start a worker, or start it again."""
        slot = self._slots.setdefault(name, Slot())
        config = {
            "bootstrap.servers": self._broker.bootstrap,
            "group.id": self.group,
            "client.id": name,
            "exactly.once.source.support": "enabled" if self._eos else "disabled",
            **{f"{kind}.storage.topic": topic for kind, topic in self.internal.items()},
        }
        worker = Worker(self._class_path, slot, config, self._tmp_path / name)
        self.workers[name] = worker
        worker.wait_ready()
        return worker

    def worker_of(self, connector: str, asked: Worker) -> Worker:
        """The worker that runs the connector's first task."""
        address, _ = self.tasks(connector, asked)[0]
        (worker,) = (each for each in self.workers.values() if each.address == address)
        return worker

    # ---- connectors

    def read_lines(self, worker: Worker) -> None:
        """Create the source, which also creates the topic."""
        creation = {"replication.factor": "1", "partitions": str(PARTITIONS)}
        config = {
            "connector.class": "FileStreamSource",
            "tasks.max": "1",
            "file": str(self.lines.path),
            "topic": self.topic,
            # So that a transaction is open nearly always.
            "transaction.boundary": "interval",
            "transaction.boundary.interval.ms": "300",
            **{f"topic.creation.default.{key}": value for key, value in creation.items()},
        }
        worker.call("PUT", f"/connectors/{self.source}/config", config)
        self.wait_tasks(worker, {self.source: 1})

    def write_lines(self, worker: Worker) -> None:
        """Create the sink, whose tasks append to one file."""
        config = {
            "connector.class": "FileStreamSink",
            "tasks.max": str(SINK_TASKS),
            "file": str(self._written),
            "topics": self.topic,
        }
        worker.call("PUT", f"/connectors/{self.sink}/config", config)
        self.wait_tasks(worker, {self.sink: SINK_TASKS})

    def tasks(self, connector: str, asked: Worker) -> dict[int, tuple[str, str]]:
        """Task -> its worker's address, and its state."""
        status = asked.call("GET", f"/connectors/{connector}/status")
        return {task["id"]: (task["worker_id"], task["state"]) for task in status["tasks"]}

    def wait_tasks(self, worker: Worker, counts: Mapping[str, int], state: str = "RUNNING") -> None:
        """Wait until each connector has so many tasks, all in that state."""

        def reached() -> bool:
            try:
                found = {name: self.tasks(name, worker) for name in counts}
            except Refused:  # its status is not written yet
                return False
            return all(
                len(found[name]) == count and {each for _, each in found[name].values()} <= {state}
                for name, count in counts.items()
            )

        wait_until(reached, PATIENCE_S, self.report)

    def wait_spread(self, *workers: Worker) -> None:
        """Wait until these workers, and no others, run the tasks."""
        addresses = {worker.address for worker in workers}

        def spread() -> bool:
            connectors = (self.source, self.sink)
            tasks = [task for name in connectors for task in self.tasks(name, workers[0]).values()]
            running = {address for address, state in tasks if state == "RUNNING"}
            return len(tasks) == 1 + SINK_TASKS and running == {address for address, _ in tasks} == addresses

        wait_until(spread, PATIENCE_S, self.report)

    def state_of(self, group: str) -> str:
        return self.admin.describe_group(group).state

    # ---- lines

    def written(self) -> list[int]:
        """The lines that the sink has written."""
        return (
            [int(line) for line in self._written.read_text().splitlines()] if self._written.exists() else []
        )

    def wait_more(self, count: int = 200) -> None:
        """Wait until `count` lines that are yet to be fed have come through."""
        expected = range(self.lines.count, self.lines.count + count)
        wait_until(lambda: {*expected} <= {*self.written()}, PATIENCE_S, self.report)

    def records(self) -> list[tuple[int, int]]:
        """The committed records of the topic, each as (partition, line)."""
        consumer = reader(self._broker.bootstrap, self.topic, PARTITIONS)
        records = read_to_end(consumer)
        consumer.close()
        return [(record.partition, int(record.value)) for record in records]

    def finish(self) -> list[int]:
        """Stop feeding, and wait until all lines have come through. Returns them."""
        lines = self.lines.stop()
        wait_until(
            lambda: {*lines} <= {*self.written()},
            PATIENCE_S,
            lambda: f"missing: {sorted({*lines} - {*self.written()})[:20]}\n{self.report()}",
        )
        return lines

    def end(self) -> None:
        for worker in self.workers.values():
            worker.kill()
        self.lines.stop()
        self.admin.close()

    def report(self) -> str:
        said = f"{self.lines.count} lines, {len(set(self.written()))} of them written"
        workers = [worker.report() for worker in self.workers.values()]
        return "\n".join([said, *workers, self._broker.report()])
