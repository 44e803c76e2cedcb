"""Kill, stop and freeze kshim and Apache Kafka by turns, while groups commit.

Nothing that was acknowledged is lost, no read goes back; and how long could nobody commit?

    python -m integration.upstream.gaps --rounds 20
    python -m integration.upstream.gaps --rounds 8 --kafka 3 --faults kafka

Prints for each kind of fault how long the groups had to wait that were coordinated by the process it happened
to: from the last commit before it to the first one after. Exit status 1 if something was lost or went back.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from integration.apache_kafka.nodes import Nodes
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server
from integration.upstream.committer import Committer

GROUPS = 8
BREATH_S = 0.02
"""Between two commits of a group."""
FROZEN_S = 9.0
"""Longer than the session of the processes."""
WITHIN_S = 60.0
TOPIC = "committed"


class Group(threading.Thread):
    """Commits and reads, and notes when commits were acknowledged."""

    def __init__(self, servers: list[Server], name: str) -> None:
        super().__init__(daemon=True)
        self.committer = Committer(servers, name, TOPIC)
        self.acknowledged_s: list[float] = []
        self.is_over = False

    def run(self) -> None:
        offset = 0
        while not self.is_over:
            offset += 1
            if self.committer.commit(offset):
                self.acknowledged_s.append(time.monotonic())
            self.committer.read()
            time.sleep(BREATH_S)

    def gap_s(self, since_s: float) -> float:
        """The longest time without an acknowledged commit that has ended since then."""
        times = list(self.acknowledged_s)
        return max((later - earlier for earlier, later in pairwise(times) if later > since_s), default=0.0)


class Play:
    def __init__(self, directory: Path, kafka: int, kshim: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.nodes = Nodes(directory, kafka).start()
        options = ["--upstream", self.nodes.bootstrap]
        self.servers = [Server(directory / f"kshim{number}", options) for number in range(kshim)]
        for server in self.servers:
            server.start()
        admin = Admin(self.nodes.bootstrap)
        admin.create_topic(TOPIC, 1, replication_factor=kafka)
        admin.close()
        self.groups = [Group(self.servers, f"group-{number}") for number in range(GROUPS)]
        self.gaps: dict[str, list[float]] = {}

    def begin(self) -> None:
        for group in self.groups:
            group.start()
        self.wait_committed(time.monotonic())

    def wait_committed(self, since_s: float) -> None:
        def committed() -> bool:
            return all(group.acknowledged_s and group.acknowledged_s[-1] > since_s for group in self.groups)

        wait_until(committed, WITHIN_S, lambda: f"commits of all\n{self.report()}")

    def round(self, fault: str) -> None:
        """Let the fault happen, wait until all goes on, and undo it."""
        server = self.random.choice(self.servers)
        hit = [group for group in self.groups if group.committer.leader() is server]
        begun_s = time.monotonic()
        undo = FAULTS[fault](self, server)
        time.sleep(BREATH_S * 2)
        self.wait_committed(time.monotonic())
        undo()
        self.wait_committed(time.monotonic())
        of = self.groups if fault == "kafka" else hit
        self.gaps.setdefault(fault, []).extend(group.gap_s(begun_s) for group in of)
        wait_until(self.is_shared, WITHIN_S, lambda: f"all to lead their share\n{self.report()}")
        self.wait_committed(time.monotonic())

    def is_shared(self) -> bool:
        """Whether each process that runs is to lead about as much as the others."""
        count = f"as one of {len(self.servers)} kshim"
        told = [[line for line in each.log if " shards of __kshim_groups" in line] for each in self.servers]
        return all(lines and count in lines[-1] for lines in told)

    def kill(self, server: Server) -> Callable[[], object]:
        server.kill()
        return server.start

    def stop(self, server: Server) -> Callable[[], object]:
        server.stop()
        return server.start

    def freeze(self, server: Server) -> Callable[[], object]:
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(FROZEN_S)
        return lambda: server.process.send_signal(signal.SIGCONT)

    def kill_kafka(self, _: Server) -> Callable[[], object]:
        node = self.random.choice(self.nodes.running())
        node.kill()
        return node.start

    def end(self) -> None:
        for group in self.groups:
            group.is_over = True
        for group in self.groups:
            if group.is_alive():
                group.join(WITHIN_S)
        for server in self.servers:
            if server.running:
                server.process.send_signal(signal.SIGCONT)
                server.kill()
        self.nodes.kill()

    def judge(self) -> list[str]:
        """What was lost, or went back."""
        for group in self.groups:
            wait_until(lambda group=group: group.committer.read() is not None, WITHIN_S, "a last read")
        return [fault for group in self.groups for fault in group.committer.faults]

    def report(self) -> str:
        return "\n".join(server.report() for server in self.servers)


FAULTS: dict[str, Callable[[Play, Server], Callable[[], object]]] = {
    "kill": Play.kill,
    "stop": Play.stop,
    "freeze": Play.freeze,
    "kafka": Play.kill_kafka,
}


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> int:
    parser = argparse.ArgumentParser(prog="integration.upstream.gaps", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="how many faults (default: %(default)s)")
    parser.add_argument("--kafka", type=int, default=1, help="nodes of Apache Kafka (default: %(default)s)")
    parser.add_argument("--kshim", type=int, default=3, help="processes (default: %(default)s)")
    parser.add_argument("--faults", default="kill,stop,freeze", help="by turns (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    faults = options.faults.split(",")
    with tempfile.TemporaryDirectory() as directory:
        play = Play(Path(directory), options.kafka, options.kshim, options.seed)
        try:
            play.begin()
            for number in range(options.rounds):
                play.round(faults[number % len(faults)])
                print(f"round {number + 1}: {faults[number % len(faults)]}", flush=True)
            for group in play.groups:
                group.is_over = True
            for group in play.groups:
                group.join(WITHIN_S)
            wrong = play.judge()
        finally:
            play.end()
    commits = sum(len(group.acknowledged_s) for group in play.groups)
    print(f"{commits} commits acknowledged; {len(wrong)} lost, or gone back", *wrong[:20], sep="\n")
    for fault, gaps in play.gaps.items():
        if gaps:
            p50, p99 = percentile(gaps, 0.5), percentile(gaps, 0.99)
            print(f"{fault}: {len(gaps)} groups without commits, p50 {p50:.2f} s, p99 {p99:.2f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
