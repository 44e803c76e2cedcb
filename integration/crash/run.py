"""One run: work, kill, check, restart, again and again; then the verdict."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from integration.crash.beating import Beating
from integration.crash.verdict import Verdict, judge_copying, judge_producing, judge_transactions
from integration.crash.workloads import PARTITIONS, Committing, Copying, Producing, Transacting, Workload
from integration.support.awaiting import wait_until
from integration.support.clients import Admin, until_served
from integration.support.server import COMMAND, Server

PATIENCE_S = 60
MIN_PROGRESS = 3
GROUPS = {"readers-a": ("classic",), "readers-b": ("classic",), "readers-c": ("consumer", "consumer")}
"""The protocols of each group's members."""
OF_BEATING = "beaters"


class Broken(AssertionError):
    """A promise was not kept. str() says which, and after which kill."""


@dataclass
class Crashes:
    """A run."""

    data_dir: Path
    kills: int
    """How many times the server is killed."""
    seed: int
    transactions: bool = True
    options: Sequence[str] = ()
    log: Callable[[str], None] = print
    """Gets one line at a time about the progress."""
    verdicts: list[Verdict] = field(default_factory=list)
    start_s: list[float] = field(default_factory=list)

    def run(self) -> list[Verdict]:
        """Raises Broken."""
        self._random = random.Random(self.seed)
        self._committed: dict[tuple[str, int], int] = {}
        self._server = Server(self.data_dir, self.options).start()
        try:
            self._begin()
            for number in range(1, self.kills + 1):
                self._work(number)
                self._kill(number)
                self._restart(number)
            self._work(self.kills + 1)
            self._end()
        finally:
            if self._server.running:
                self._server.kill()
        return self.verdicts

    def _begin(self) -> None:
        bootstrap = self._server.bootstrap
        admin = Admin(bootstrap)
        topics = ["plain", "idempotent", *(["transactions", "copied"] if self.transactions else [])]
        for topic in topics:
            admin.create_topic(topic, PARTITIONS)
            wait_until(lambda topic=topic: len(admin.partitions(topic)) == PARTITIONS, 10, topic)
        admin.close()
        self._plain = Producing(bootstrap, "plain", idempotent=False)
        self._idempotent = Producing(bootstrap, "idempotent", idempotent=True)
        self._groups = [
            Committing(bootstrap, "idempotent", group_id, protocol)
            for group_id, protocols in GROUPS.items()
            for protocol in protocols
        ]
        self._beating = Beating(bootstrap, "idempotent", OF_BEATING)
        self._workloads: list[Workload] = [self._plain, self._idempotent, *self._groups, self._beating]
        if self.transactions:
            self._transacting = Transacting(bootstrap, "transactions", self.seed)
            self._copying = Copying(bootstrap, "idempotent", "copied")
            self._workloads += [self._transacting, self._copying]
        for workload in self._workloads:
            workload.start()

    def _work(self, number: int) -> None:
        """Mostly wait until every client has made progress, and then a random while longer."""
        if self._random.random() < 0.85:
            floors = [(workload, workload.done + MIN_PROGRESS) for workload in self._workloads]
            wait_until(
                lambda: self._failed() or all(workload.done >= floor for workload, floor in floors),
                PATIENCE_S,
                lambda: (
                    f"kill {number}: some get no further: "
                    f"{[(w.topic, w.done, floor) for w, floor in floors]}\n{self._server.report()}"
                ),
            )
        if failed := self._failed():
            raise Broken(f"before kill {number}: {failed.topic}: {failed.failure!r}") from failed.failure
        time.sleep(self._random.uniform(0, 0.5))

    def _failed(self) -> Workload | None:
        return next((workload for workload in self._workloads if workload.failure is not None), None)

    def _kill(self, number: int) -> None:
        members: list[Committing | Beating] = [*self._groups, self._beating]
        for group in members:
            for partition, offset in list(group.acknowledged.items()):
                known = self._committed.get((group.group_id, partition), 0)
                self._committed[group.group_id, partition] = max(known, offset)
        self._server.kill()
        done = subprocess.run(
            [*COMMAND, "check", str(self.data_dir)],
            cwd=self.data_dir.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Broken(f"after kill {number}: kshim check: {done.stdout}{done.stderr}")

    def _restart(self, number: int) -> None:
        started_at = time.monotonic()
        self._server.restart()
        self.start_s.append(time.monotonic() - started_at)
        counts = ", ".join(f"{workload.topic} {workload.done}" for workload in self._workloads)
        self.log(f"kill {number} of {self.kills}: up again in {self.start_s[-1]:.2f} s; {counts}")
        admin = until_served(lambda: Admin(self._server.bootstrap))
        for group_id in (*GROUPS, OF_BEATING):
            found = until_served(lambda group_id=group_id: admin.group_offsets(group_id))
            for (topic, partition), offset in found.items():
                assert topic == "idempotent"
                before = self._committed.get((group_id, partition), 0)
                if offset < before:
                    raise Broken(f"after kill {number}: {group_id} had committed {before}, and has {offset}")
                self._committed[group_id, partition] = offset
            missing = {p for g, p in self._committed if g == group_id} - {p for _, p in found}
            if missing:
                raise Broken(f"after kill {number}: {group_id} has lost its offsets of {missing}")
        admin.close()

    def _end(self) -> None:
        for workload in self._workloads:
            workload.stop()
        bootstrap = self._server.bootstrap
        self.verdicts.append(judge_producing(bootstrap, self._plain, idempotent=False))
        self.verdicts.append(judge_producing(bootstrap, self._idempotent, idempotent=True))
        if self.transactions:
            self.verdicts.append(judge_transactions(bootstrap, self._transacting))
            self.verdicts.append(judge_copying(bootstrap, self._copying))
        status = self._server.stop()
        if status:
            raise Broken(f"exit status {status} of a clean stop\n{self._server.report()}")
        faults = [f"{verdict.topic}: {fault}" for verdict in self.verdicts for fault in verdict.faults]
        traceback = next((line for line in self._server.log if "Traceback" in line), None)
        if traceback is not None:
            faults.append(f"a traceback in the server's log\n{self._server.report()}")
        if faults:
            raise Broken("\n".join(faults))
