"""Nodes of Apache Kafka, kshim in front of them, groups under load; and the faults that happen to them."""

from __future__ import annotations

import random
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from integration.apache_kafka.nodes import Nodes
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server
from integration.upstream.load import WITHIN_S, Bare, Consumers, Loaded, gap_s, wait_committed

FROZEN_S = 9.0
"""Longer than the session of the processes."""
TOPIC = "committed"
SHARE = " kshim share them"

Undo = Callable[[], object]


def are_to_share(servers: Sequence[Server], count: int) -> bool:
    """True if each of these was last told that `count` kshim share the shards."""
    lines = [[line for line in each.log if SHARE in line] for each in servers]
    return all(of and f" {count}{SHARE}" in of[-1] for of in lines)


class Ending(Protocol):
    def end(self) -> None: ...


class Killed(Protocol):
    def kill(self) -> None: ...


def end_all(groups: Sequence[Ending], servers: Sequence[Server], nodes: Killed) -> None:
    """End the groups, then the servers that run, of which some may be stopped, then the nodes."""
    for group in groups:
        group.end()
    for server in servers:
        if server.running:
            server.process.send_signal(signal.SIGCONT)
            server.kill()
    nodes.kill()


class Play:
    """Begin it, let faults happen one after the other, judge it, end it."""

    def __init__(self, directory: Path, kafka: int, kshim: int, seed: int) -> None:
        self.gaps: dict[tuple[str, str], list[float]] = defaultdict(list)
        """By the fault, and who commits: how long those had no commit whom it happened to."""
        self.told_s: dict[str, list[float]] = defaultdict(list)
        """By the fault: after what time the other processes were to lead its shards."""
        self.groups: list[Loaded] = []
        self.most_loaded = 0.0
        """The highest load average of a minute so far."""
        self._directory, self._replicas = directory, kafka
        self._random = random.Random(seed)
        replicated = (
            f"{name}={kafka}" for name in ("offsets.topic.replication.factor", "default.replication.factor")
        )
        least = f"min.insync.replicas={max(1, kafka - 1)}"
        self.nodes = Nodes(
            directory, kafka, *(part for each in (*replicated, least) for part in ("--set", each))
        ).start()
        self.servers = [
            Server(directory / f"kshim{number}", ["--upstream", self.nodes.bootstrap])
            for number in range(kshim)
        ]

    def begin(self, bare: int, kinds: Sequence[str]) -> None:
        """Start kshim, and so many groups of bare commits, and one of each kind of consumers."""
        for server in self.servers:
            server.start()
        self.wait_shared()
        admin = Admin(self.nodes.bootstrap)
        admin.create_topic(TOPIC, 1, replication_factor=self._replicas)
        admin.close()
        self.groups += [Bare(self.servers, f"group-{number}", TOPIC) for number in range(bare)]
        for kind in kinds:
            self.groups.append(
                Consumers(self.servers, kind, f"read-by-{kind}", self._directory, self._replicas)
            )
        self.wait_committed(self.groups)

    # ---- a fault

    def round(self, fault: str) -> None:
        """Inject the fault, wait until all consumers go on, and undo it."""
        server = self._random.choice(self.servers)
        happens_to = self.nodes if fault == "kafka" else server
        hit = [each for each in self.groups if happens_to is self.nodes or each.leader() is server]
        begun_s = time.monotonic()
        undo = FAULTS[fault](self, server)
        if happens_to is server:
            self.wait_told([each for each in self.servers if each is not server])
            self.told_s[fault].append(time.monotonic() - begun_s)
        if fault == "freeze":
            # Real clients wait for a process that does not answer, as long as it keeps its connections.
            self.wait_committed([each for each in self.groups if isinstance(each, Bare)])
            wait_until(lambda: time.monotonic() > begun_s + FROZEN_S, FROZEN_S, "the end of a session")
            undo()
            self.wait_committed(self.groups)
        else:
            self.wait_committed(self.groups)
            undo()
        for group in hit:
            self.gaps[fault, group.kind].append(gap_s(group, begun_s))
        self.wait_shared()
        self.wait_committed(self.groups)
        self.most_loaded = max(self.most_loaded, load_average())

    def wait_committed(self, groups: Sequence[Loaded]) -> None:
        wait_committed(groups, self.servers)

    def wait_told(self, servers: Sequence[Server]) -> None:
        """Wait until these are to lead all shards among them."""
        self._wait_as_one_of(servers, len(servers))

    def wait_shared(self) -> None:
        """Wait until each process is to lead about as much as the others."""
        self._wait_as_one_of(self.servers, len(self.servers))

    def _wait_as_one_of(self, servers: Sequence[Server], count: int) -> None:
        wait_until(
            lambda: are_to_share(servers, count), WITHIN_S, lambda: f"{count} to share all\n{self.report()}"
        )

    # ---- the faults

    def kill(self, server: Server) -> Undo:
        server.kill()
        return server.start

    def stop(self, server: Server) -> Undo:
        server.stop()
        return server.start

    def freeze(self, server: Server) -> Undo:
        server.process.send_signal(signal.SIGSTOP)
        return lambda: server.process.send_signal(signal.SIGCONT)

    def kill_kafka(self, _: Server) -> Undo:
        node = self._random.choice(self.nodes.running())
        node.kill()
        return node.start

    # ---- the end

    def judge(self) -> list[str]:
        """The faults found: offsets lost or gone back, partitions owned twice."""
        return [fault for group in self.groups for fault in group.finish()]

    def end(self) -> None:
        end_all(self.groups, self.servers, self.nodes)

    def report(self) -> str:
        """The logs of all processes."""
        return "\n".join([each.report() for each in self.servers] + [each.report() for each in self.groups])


FAULTS: dict[str, Callable[[Play, Server], Undo]] = {
    "kill": Play.kill,
    "stop": Play.stop,
    "freeze": Play.freeze,
    "kafka": Play.kill_kafka,
}


def load_average() -> float:
    return float(Path("/proc/loadavg").read_text().split()[0])
