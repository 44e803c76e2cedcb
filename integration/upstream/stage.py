"""Two kshim in front of Apache Kafka, and eight members of two clients, half of which copy in transactions.

Each kshim reaches each node by a way of its own, which can be broken. In each round a fault happens to a
kshim, to a node, or to both, while one of the members is replaced by another. The round is over when
everybody has gone on: all members have committed, and what was acknowledged before has been processed.
"""

from __future__ import annotations

import random
import shutil
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from integration.apache_kafka.nodes import are_in_sync
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server
from integration.support.story import Feed
from integration.upstream.copies import Copies
from integration.upstream.load import gap_s
from integration.upstream.play import are_to_share, end_all, load_average
from integration.upstream.seats import PROGRAMS, Seat, SeatedGroup
from integration.upstream.ways import NodesWithWays

WAYS = ("FIRST", "SECOND")
"""The ways of the two kshim to the nodes."""
TOPIC = "orders"
PARTITIONS = 6
FEED_S = 0.04
HELD_S = 9.0
"""How long a fault lasts that ends by itself: longer than the session of a kshim."""
LOOK_S = 0.3
STUCK_S = 30.0
"""A member that has not committed for so long, when nothing is wrong any more, is replaced."""
WITHIN_S = 180.0

Undo = Callable[[], object]


class Target(NamedTuple):
    """What a fault happens to."""

    kshim: Server
    way: str
    """The kshim's way to the nodes."""
    node_id: int
    by_kill: bool
    """True if a node that is restarted ends by SIGKILL; else in order."""


class Round(NamedTuple):
    """What is drawn for one round."""

    fault: str
    target: Target
    seat: Seat


class Stage:
    """Begin it, play rounds, judge it, end it."""

    def __init__(self, directory: Path, kafka: int, seed: int) -> None:
        self.gaps: dict[tuple[str, str], list[float]] = defaultdict(list)
        """By fault and kind of member: how long those had no commit whom it happened to."""
        self.replaced: dict[str, list[str]] = defaultdict(list)
        """By kind of member: the last words of those that stood still, or ended by themselves."""
        self._replaced_now: list[str] = []
        """Of the round that is played."""
        self.most_loaded = 0.0
        """The highest load average of a minute so far."""
        self.groups: list[SeatedGroup] = []
        self._random = random.Random(seed)
        self._directory, self._replicas = directory, kafka
        self._over = threading.Event()
        least = max(1, kafka - 1)
        settings: dict[str, object] = {
            "offsets.topic.replication.factor": kafka,
            "default.replication.factor": kafka,
            "transaction.state.log.replication.factor": kafka,
            "transaction.state.log.min.isr": least,
            "min.insync.replicas": least,
        }
        self.nodes = NodesWithWays(directory, kafka, WAYS, settings).start()
        self.servers = [
            Server(directory / f"kshim{number}", ["--upstream", self.nodes.bootstrap_by(way)])
            for number, way in enumerate(WAYS, 1)
        ]

    def begin(self) -> None:
        """Start both kshim, the feed, and the groups, and wait until all commit."""
        for server in self.servers:
            server.start()
        wait_until(self._is_shared, WITHIN_S, self.report)
        self.groups = [
            SeatedGroup(self.servers, kind, TOPIC, PARTITIONS, self._directory) for kind in PROGRAMS
        ]
        copies = {group.copies_to: group.seen for group in self.groups if group.copies_to}
        admin = Admin(self.nodes.bootstrap)
        for topic in (TOPIC, *copies):
            admin.create_topic(topic, PARTITIONS, replication_factor=self._replicas)
        admin.close()
        bootstrap = ",".join(server.bootstrap for server in self.servers)
        self.feed = Feed(bootstrap, TOPIC, PARTITIONS, interval_s=FEED_S)
        self._copies = Copies(self.nodes.bootstrap, PARTITIONS, copies)
        self._looking = threading.Thread(target=self._look, daemon=True)
        self._looking.start()
        self._wait_gone_on()

    def _look(self) -> None:
        while not self._over.wait(LOOK_S):
            for group in self.groups:
                group.look()

    def _is_shared(self) -> bool:
        return are_to_share(self.servers, len(self.servers))

    # ---- a round

    def draw(self, faults: Sequence[str]) -> Round:
        number = self._random.randrange(len(self.servers))
        node_id = self._random.choice(list(self.nodes.servers))
        fault = self._random.choice(faults)
        seats = [seat for group in self.groups for seat in group.seats]
        seat = self._random.choice(seats)
        by_kill = FAULTS[fault].hits_all and self._random.random() >= 0.5
        return Round(fault, Target(self.servers[number], WAYS[number], node_id, by_kill), seat)

    def play(self, round: Round) -> str:
        """Play one round, and say what was done."""
        fault, kshim = FAULTS[round.fault], round.target.kshim
        hit = [each for each in self.groups if fault.hits_all or each.leader() is kshim]
        begun_s = time.monotonic()
        undo = fault.do(self, round.target)
        ended = round.seat.replace()
        if fault.lasts == HELD:
            wait_until(lambda: time.monotonic() > begun_s + HELD_S, 2 * HELD_S, "the end of the fault")
        elif fault.lasts == GONE_ON:
            self._wait_gone_on()
        undo()
        self._wait_gone_on()
        for group in hit:
            if round.seat not in group.seats:
                self.gaps[round.fault, group.kind].append(gap_s(group, begun_s))
        wait_until(self._is_calm, WITHIN_S, self.report)
        self._bury()
        self.most_loaded = max(self.most_loaded, load_average())
        took_s = time.monotonic() - begun_s
        stuck = "".join(f", {each} replaced" for each in self._replaced_now)
        self._replaced_now.clear()
        return f"{round.fault} ({kshim.data_dir.name}), {round.seat.name} {ended}{stuck}; {took_s:.0f} s"

    def _is_calm(self) -> bool:
        nodes = self.nodes.servers.values()
        return self._is_shared() and all(are_in_sync(node, len(nodes)) for node in nodes)

    def _wait_gone_on(self) -> None:
        """Wait until all members have committed, and all records that are acknowledged now are processed.

        Replaces members that stand still.
        """
        since_s, ends = time.monotonic(), self.ends()
        until_s = since_s + WITHIN_S
        while not all(group.has_gone_on(since_s, ends) for group in self.groups):
            assert time.monotonic() < until_s, f"not all go on\n{self._missing(ends)}\n{self.report()}"
            self._replace_stuck(since_s)
            time.sleep(LOOK_S)

    def _replace_stuck(self, since_s: float) -> None:
        now_s = time.monotonic()
        for seat in (seat for group in self.groups for seat in group.seats):
            moved_s = max(since_s, seat.sat_s, *seat.member.commits_s[-1:])
            if not seat.member.running or now_s > moved_s + STUCK_S:
                self._replaced_now.append(seat.name)
                self.replaced[str(seat.kind)].append(seat.replace_stuck())

    def _bury(self) -> None:
        for group in self.groups:
            for name in group.bury():
                self.replaced[group.kind].append(f"{name} did not end")

    def ends(self) -> Mapping[int, int]:
        """The end of what was acknowledged to the feed, by partition."""
        found: dict[int, int] = {}
        for partition, offset in list(self.feed.acknowledged):
            found[partition] = max(offset + 1, found.get(partition, 0))
        return found

    # ---- the end

    def judge(self) -> list[str]:
        """What was lost, went back, was owned twice, or was read twice in read_committed."""
        acknowledged = self.feed.stop()
        wrong = [f"not sent: {error}" for error in self.feed.errors[:3]]
        self._wait_gone_by(ends := self.ends())
        wrong += self._missing(ends)
        assert self._looking.is_alive(), "nobody looks at the offsets any more"
        for group in self.groups:
            wrong += [*group.faults, *group.owned_twice()]
            if group.copies_to:
                wrong += group.seen.twice
            else:
                changed = [at for at, value in acknowledged.items() if group.values.get(at) != value]
                wrong += [f"{group.name} has not read {changed[:5]}"] if changed else []
        return wrong

    def _wait_gone_by(self, ends: Mapping[int, int]) -> None:
        since_s = time.monotonic()
        while not all(group.seen.covers(ends) for group in self.groups):
            if time.monotonic() > since_s + WITHIN_S:
                return
            time.sleep(LOOK_S)

    def _missing(self, ends: Mapping[int, int]) -> list[str]:
        return [missing for group in self.groups for missing in group.seen.missing(ends)]

    def end(self) -> None:
        self._over.set()
        ending = [*self.groups, *([self._copies, self.feed] if self.groups else [])]
        end_all(ending, self.servers, self.nodes)

    def keep(self, directory: Path) -> None:
        """Write the logs of all processes into a new directory."""
        directory.mkdir(parents=True)
        for server in (*self.servers, *self.nodes.servers.values()):
            (directory / f"{server.data_dir.name}.log").write_text("\n".join(server.log))
        for path in self._directory.glob("*.log"):
            shutil.copy(path, directory)

    def report(self) -> str:
        return "\n".join(each.report() for each in (*self.servers, *self.groups))

    # ---- the faults

    def kill(self, target: Target) -> Undo:
        target.kshim.kill()
        return target.kshim.start

    def freeze(self, target: Target) -> Undo:
        target.kshim.process.send_signal(signal.SIGSTOP)
        return lambda: target.kshim.process.send_signal(signal.SIGCONT)

    def cut(self, target: Target) -> Undo:
        """Reset the kshim's connections to all nodes, and refuse new ones."""
        ways = self.nodes.ways[target.way].values()
        for way in ways:
            way.cut()
        return lambda: [way.mend() for way in ways]

    def hole(self, target: Target) -> Undo:
        """Lose what the kshim and one node send each other."""
        way = self.nodes.ways[target.way][target.node_id]
        way.hole()
        return way.mend

    def drain(self, target: Target) -> Undo:
        """Hand over groups and clients, and end when all have gone on."""
        target.kshim.steer("drain")
        return lambda: self.restart(target)

    def restart(self, target: Target) -> Undo:
        target.kshim.stop()
        target.kshim.start()
        return _nothing

    def restart_kafka(self, target: Target) -> Undo:
        node = self.nodes.servers[target.node_id]
        if target.by_kill:
            node.kill()
        else:
            node.stop()
        return node.start

    def restart_both(self, target: Target) -> Undo:
        start = self.restart_kafka(target)
        target.kshim.kill()
        return lambda: (start(), target.kshim.start())


def _nothing() -> None:
    """Undo a fault that is over."""


AT_ONCE, GONE_ON, HELD = "at once", "when all have gone on", "after HELD_S"


class Fault(NamedTuple):
    """Something that happens in a round."""

    do: Callable[[Stage, Target], Undo]
    lasts: str
    """When it is undone: AT_ONCE, GONE_ON or HELD."""
    hits_all: bool = False
    """True if it happens to all groups; else to those that the kshim coordinates."""


FAULTS: Mapping[str, Fault] = {
    "kill": Fault(Stage.kill, AT_ONCE),
    "long kill": Fault(Stage.kill, GONE_ON),
    "freeze": Fault(Stage.freeze, HELD),
    "cut": Fault(Stage.cut, HELD),
    "hole": Fault(Stage.hole, HELD),
    "drain": Fault(Stage.drain, GONE_ON),
    "restart kshim": Fault(Stage.restart, AT_ONCE),
    "restart Kafka": Fault(Stage.restart_kafka, AT_ONCE, hits_all=True),
    "restart both": Fault(Stage.restart_both, AT_ONCE, hits_all=True),
}
