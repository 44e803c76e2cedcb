"""Several kshim that try to lead the same shard, and clients that commit and read.

The clients see one register: every read that begins after a commit sees it, at any kshim, and no read
is followed by an older one. The log has each acknowledged commit, and each commit once.
"""

from __future__ import annotations

from random import Random

from tests.simulation.groups.clock import SimulatedClock
from tests.simulation.shards.kafka import Kafka, value_of
from tests.simulation.shards.node import Network, Node

STEPS = 400
NODES = 3
CALM_MS = 20_000
SESSION_MS = 1_000
"""After that, mostly, another node is to lead in place of one that is not heard any more."""


class Wrong(AssertionError):
    """Something that must not happen has happened."""


class World:
    """All of it; `step` lets one thing happen."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.clock = SimulatedClock()
        self.begun_ms = self.clock.now_ms
        self._happened: list[tuple[int, str, str, object]] = []
        self.kafka = Kafka(self.clock, self.chance)
        self.network = Network(self.clock, self.chance)
        self.commits = self.acknowledged = self.reads = self.crashes = self.sleeps = self.refused = 0
        self.takeovers = 0
        self._acknowledged: list[bytes] = []
        """Acknowledged or read, in the order in which clients heard it."""
        self._heard_by: list[tuple[int, bytes]] = []
        """(how many values were known when a read began, what it has read), to be judged at the end."""
        self._names = 0
        self.nodes = [self._new_node() for _ in range(NODES)]

    def tell(self, who: str, what: str, detail: object) -> None:
        self._happened.append((self.clock.now_ms - self.begun_ms, who, what, detail))

    def lines(self) -> tuple[str, ...]:
        """The history."""
        return tuple(
            f"{at_ms / 1000:9.3f}  {who:8} {what:22} {detail}".rstrip()
            for at_ms, who, what, detail in self._happened
        )

    def _new_node(self) -> Node:
        self._names += 1
        return Node(f"kshim{self._names}", self.kafka, self.clock, self.network, self.chance, self.tell)

    # ---- what happens

    def play(self, steps: int) -> None:
        """Make `steps` things happen, let the world settle, and judge it."""
        self.assign(1)
        for _ in range(steps):
            self.step()
        self.settle()
        self.judge()

    def step(self) -> None:
        """Make one thing happen, and then pass time."""
        match self.chance.choices(
            ("commit", "read", "assign", "sleep", "crash", "weather", "compact", "rest"),
            (50, 50, 2, 2, 0.5, 2, 2, 0.1),
        )[0]:
            case "commit":
                self.commit()
            case "read":
                self.read()
            case "assign":
                self.assign(self.chance.choice((0, 1, 1, 1, 1, 2)))
            case "sleep":
                self.sleep()
            case "crash":
                self.crash(self.chance.randrange(NODES))
            case "weather":
                self.network.loss = self.chance.choice((0, 0, 0, 0, 0.02, 0.2, 1))
                self.network.slowest_ms = self.chance.choice((2, 5, 50, 500))
                self.kafka.slowest_ms = self.chance.choice((0, 3, 100))
                self.kafka.trouble = self.chance.choice((0, 0, 0.1, 0.5))
                self.tell(
                    "network", "changes", f"loss {self.network.loss}, up to {self.network.slowest_ms} ms"
                )
            case "compact":
                self.kafka.compact()
            case "rest":
                self.run(self.chance.choice((40_000, 25 * 60_000)))
        self.run(self.chance.choice((0, 0, 1, 5, 20, 100, 1000)))

    def run(self, for_ms: int) -> None:
        """Pass time."""
        until_ms = self.clock.now_ms + for_ms
        over = False

        def stop() -> None:
            nonlocal over
            over = True

        self.clock.after(for_ms, stop)
        while not over:
            self.clock.step()
        assert self.clock.now_ms == until_ms

    def commit(self, at: Node | None = None) -> None:
        """A client commits, at any node: it need not know who leads, nor whether that is awake."""
        self.commits += 1
        number = self.commits
        ((_, value),) = value_of(number)
        assert value is not None
        node = at or self._asked()

        def reply(committed: bytes | None) -> None:
            self.tell(node.name, "acknowledges" if committed else "cannot tell of", value)
            if committed is None:
                self.refused += 1
            else:
                self.acknowledged += 1
                self._acknowledged.append(value)

        self.tell("client", "commits", f"{value!r} at {node.name}")
        node.later(self.network.delay_ms(), node.commit, number, reply)

    def read(self, at: Node | None = None) -> None:
        node = at or self._asked()
        known = len(self._acknowledged)

        def reply(value: bytes | None) -> None:
            if value is not None:
                self.reads += 1
                self.tell(node.name, "has read", value)
                self._heard_by.append((known, value))
                if value:
                    self._acknowledged.append(value)

        node.later(self.network.delay_ms(), node.read, reply)

    def _asked(self) -> Node:
        """A node, mostly one that says that it leads: clients come back to such."""
        leading = [node for node in self.nodes if node.tenure is not None]
        return self.chance.choice(leading if leading and self.chance.random() < 0.9 else self.nodes)

    def _answers(self, node: Node) -> bool:
        return node.is_alive and self.clock.now_ms >= node.wakes_ms

    def assign(self, count: int) -> None:
        """Tell some nodes to lead, mostly one; the others hear of it, sooner or later."""
        chosen = self.chance.sample(self.nodes, count)
        for node in self.nodes:
            node.later(self.chance.randint(0, 3000), node.assign, node in chosen)

    def sleep(self) -> None:
        """A node is stopped for a while; it does not know that."""
        self.sleeps += 1
        node = self.chance.choice(self.nodes)
        for_ms = self.chance.choice((50, 600, 600, 2_000, 2_000, 8_000, 40_000, 25 * 60_000))
        node.wakes_ms = max(node.wakes_ms, self.clock.now_ms + for_ms)
        self.tell(node.name, "sleeps", f"{for_ms} ms")
        if for_ms > SESSION_MS and self.chance.random() < 0.8:
            self.clock.after(SESSION_MS, self._replace, node)

    def crash(self, number: int) -> None:
        """A node ends, and another one begins in its place."""
        self.crashes += 1
        self.tell(self.nodes[number].name, "crashes", "")
        self.nodes[number].crash()
        self.takeovers += self.nodes[number].takeovers
        self.nodes[number] = self._new_node()
        self.clock.after(SESSION_MS, self._replace, self.nodes[number])

    def _replace(self, gone: Node) -> None:
        """Make another node lead in place of one whose session is over. The old leader hears of it later."""
        successor = self.chance.choice([node for node in self.nodes if node is not gone])
        for node in self.nodes:
            node.later(0, node.assign, node is successor)

    # ---- the end

    def settle(self) -> None:
        """End all faults. Some node has to lead then, and to take commits."""
        self.network.loss, self.network.slowest_ms = 0.0, 5
        self.kafka.trouble, self.kafka.slowest_ms = 0.0, 3
        for number, node in enumerate(self.nodes):
            if not self._answers(node):
                self.crash(number)
        self.run(CALM_MS)
        for node in self.nodes:
            node.assign(node is self.nodes[0])
        self.run(CALM_MS)
        before = self.acknowledged
        self.commits += 1
        value = b"%d" % self.commits

        def reply(committed: bytes | None) -> None:
            if committed is not None:
                self.acknowledged += 1
                self._acknowledged.append(value)

        self.nodes[0].commit(self.commits, reply)
        self.run(1_000)
        if self.acknowledged == before:
            raise Wrong("in calm nobody leads")

    def judge(self) -> None:
        """The log has what was acknowledged, once; reads go forward only."""
        order = self.kafka.order
        places = {value: place for place, value in enumerate(order)}
        if len(places) != len(order):
            raise Wrong("a commit is in the log twice")
        highest: list[int] = [-1]
        for value in self._acknowledged:
            if value not in places:
                raise Wrong(f"{value!r} was acknowledged or read, and is not in the log")
            highest.append(max(highest[-1], places[value]))
        for known, value in self._heard_by:
            place = places[value] if value else -1
            if place < highest[known]:
                raise Wrong(f"{value!r} was read, when {order[highest[known]]!r} was known")
