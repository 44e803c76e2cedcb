"""Several kshim that share a shard, producers that commit offsets in transactions, and clients that read.

All commits are of one offset of one group, each of another number. Which of them count, and in which order,
the log says: the plain ones, and those of committed transactions that are in front of their markers; of two,
the one that is later in the log. No read may show anything else, none may go back, and what a client knows to
be committed has to be there when it asks for stable offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import TopicId
from tests.simulation.groups.clock import SimulatedClock
from tests.simulation.shards.node import Network
from tests.simulation.upstream.kafka import KafkaWithTransactions, Producer, Transaction
from tests.simulation.upstream.node import FAILURES, REQUEST_TIMEOUT_MS, Node

STEPS = 250
NODES = 3
PRODUCERS = 3
CALM_MS = 12_000
SESSION_MS = 1_000
TRIES = 3
AGAIN_MS = 30
UNSEEN_MS = 150
"""How long clients do not see that a topic was made again."""
LOOKS_MS = 35_000
"""Within that, all processes have looked at the topic."""
REPAIR_MS = 20_000
"""Until whoever has taken over has looked at what the upstream has, and sent what it has not."""


class Wrong(AssertionError):
    """Something that must not happen has happened."""


@dataclass(eq=False)
class Attempt:
    """A transaction as its client sees it, with one number."""

    number: int
    producer_id: int
    epoch: int
    topic_id: TopicId
    """That of the topic when it began."""
    ends_early: bool
    """Whether the client ends it before its commit is answered."""
    tries: int = 0
    is_over: bool = False
    is_acknowledged: bool = False
    transaction: Transaction | None = None


@dataclass(frozen=True)
class Read:
    """The result of a read, and what was known when the read began."""

    number: int
    known: int
    """How many numbers were known to whoever reads."""
    known_stable: int
    """How many numbers were known to whoever reads stable offsets."""
    topic_id: TopicId
    """That of the topic all the while."""


@dataclass(frozen=True)
class Sent:
    """An offset that was sent to the upstream's own coordinator."""

    number: int
    by: Node
    acknowledged: int
    """How many plain commits were acknowledged by then."""


class World:
    """All of it; `step` lets one thing happen."""

    def __init__(self, seed: int) -> None:
        FAILURES.clear()
        self.chance = Random(seed)
        self.clock = SimulatedClock()
        self.begun_ms = self.clock.now_ms
        self.kafka = KafkaWithTransactions(self.clock, self.chance)
        self.network = Network(self.clock, self.chance)
        self._happened: list[tuple[int, str, str, object]] = []
        self.commits = self.transactions = self.committed = self.aborted = self.reads = self.unstable = 0
        self.takeovers = self.crashes = self.refused = 0
        self._number = 0
        self._names = 0
        self._calm_until_ms = 0
        self._for_present: dict[int, TopicId] = {}
        """Numbers that were committed for the topic of an id, which was there from then until the answer."""
        self._attempts: dict[int, Attempt] = {}
        """By producer id: the one under way."""
        self._by_number: dict[int, Attempt] = {}
        self._known: list[int] = []
        self._known_stable: list[int] = []
        self._acknowledged: list[tuple[int, Node]] = []
        """Plain commits, and who has acknowledged them."""
        self._sent: list[Sent] = []
        self._read: list[Read] = []
        self.nodes = [self._new_node() for _ in range(NODES)]
        for producer_id in range(1, PRODUCERS + 1):
            self.kafka.producers[producer_id] = Producer(producer_id, bumps=self.chance.random() < 0.5)

    def tell(self, who: str, what: str, detail: object = "") -> None:
        self._happened.append((self.clock.now_ms - self.begun_ms, who, what, detail))

    def lines(self) -> tuple[str, ...]:
        return tuple(
            f"{at_ms / 1000:9.3f}  {who:10} {what:24} {detail}".rstrip()
            for at_ms, who, what, detail in self._happened
        )

    def _new_node(self) -> Node:
        self._names += 1
        name = f"kshim{self._names}"
        return Node(name, self.kafka, self.clock, self.network, self.chance, self._note_sent)

    def _note_sent(self, node: Node, number: int) -> None:
        self.tell(node.name, "sends upstream", number)
        self._sent.append(Sent(number, node, len(self._acknowledged)))

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
            (
                "commit",
                "transact",
                "read",
                "assign",
                "sleep",
                "crash",
                "weather",
                "compact",
                "abort",
                "rest",
                "doze",
                "make",
            ),
            (15, 60, 40, 2, 1.5, 2.5, 2, 6, 1.5, 0.3, 1, 1),
        )[0]:
            case "commit":
                self.commit()
            case "transact":
                self.transact(self.chance.randint(1, PRODUCERS))
            case "read":
                self.read(is_stable=self.chance.random() < 0.7)
            case "assign":
                self.assign(self.chance.choice((0, 1, 1, 1, 1, 2)))
            case "sleep":
                self.sleep()
            case "crash":
                self.crash(self.chance.randrange(NODES))
            case "weather":
                self._weather()
            case "compact":
                self.kafka.compact()
            case "abort":
                self.kafka.abort(self.chance.randint(1, PRODUCERS))
            case "rest":
                self.run(self.chance.choice((10_000, 40_000, 130_000)))
            case "doze":
                self.doze()
            case "make":
                self.make_again()
        self.run(self.chance.choice((0, 0, 1, 5, 20, 100, 1000)))

    def make_again(self) -> None:
        """The topic is deleted and made again, which clients see when it is over. Nobody sleeps then, and the
        upstream answers in time; else kshim goes by what it has known.
        """
        if self.clock.now_ms < max(node.wakes_ms for node in self.nodes):
            return
        self._calm()
        self.run(REQUEST_TIMEOUT_MS + 1_000)
        self.kafka.make_again()
        self.tell("topic", "is made again", self.kafka.topic_id.int)
        self.run(UNSEEN_MS)
        self._calm_until_ms = self.clock.now_ms + LOOKS_MS

    def _calm(self) -> None:
        self.network.loss, self.network.slowest_ms = 0.0, 5
        self.kafka.trouble, self.kafka.slowest_ms, self.kafka.slowest_marker_ms = 0.0, 3, 5

    def _is_calm(self) -> bool:
        return self.clock.now_ms < self._calm_until_ms

    def _weather(self) -> None:
        if self._is_calm():
            return
        self.network.loss = self.chance.choice((0, 0, 0, 0, 0.02, 0.2, 1))
        self.network.slowest_ms = self.chance.choice((2, 5, 50, 500))
        self.kafka.slowest_ms = self.chance.choice((0, 3, 100))
        self.kafka.slowest_marker_ms = self.chance.choice((0, 5, 100, 3_000))
        self.kafka.trouble = self.chance.choice((0, 0, 0.1, 0.5))
        self.tell("network", "changes", f"loss {self.network.loss}, up to {self.network.slowest_ms} ms")

    def run(self, for_ms: int) -> None:
        """Pass time."""
        over = False

        def stop() -> None:
            nonlocal over
            over = True

        self.clock.after(for_ms, stop)
        while not over:
            self.clock.step()
        for failure in FAILURES:
            failure.raiseException()

    def assign(self, count: int) -> None:
        chosen = self.chance.sample(self.nodes, count)
        for node in self.nodes:
            self.clock.after(self.chance.randint(0, 3000), node.awake, node.assign, node in chosen)

    def sleep(self) -> None:
        self._sleep(self.chance.choice(self.nodes), (50, 600, 600, 2_000, 2_000, 8_000, 40_000))

    def doze(self) -> None:
        """A leader falls asleep after a commit of which the upstream has not heard; others commit then."""
        leading = [node for node in self.nodes if node.leads]
        if leading:
            self.commit(leading[0])
            self.run(self.chance.randint(0, 300))
            self._sleep(leading[0], (4_000, 8_000))
            for _ in range(8):
                self.run(500)
                self.commit()

    def _sleep(self, node: Node, times_ms: Sequence[int]) -> None:
        if self._is_calm():
            return
        for_ms = self.chance.choice(times_ms)
        node.wakes_ms = max(node.wakes_ms, self.clock.now_ms + for_ms)
        self.tell(node.name, "sleeps", f"{for_ms} ms")
        if for_ms > SESSION_MS and self.chance.random() < 0.8:
            self.clock.after(SESSION_MS, self._replace, node)

    def crash(self, number: int) -> None:
        """A node ends, and another one begins in its place."""
        self.crashes += 1
        self.tell(self.nodes[number].name, "crashes")
        self.nodes[number].crash()
        self.nodes[number] = self._new_node()
        self.clock.after(SESSION_MS, self._replace, self.nodes[number])

    def _replace(self, gone: Node) -> None:
        successor = self.chance.choice([node for node in self.nodes if node is not gone])
        for node in self.nodes:
            node.awake(node.assign, node is successor)

    def _asked(self) -> Node:
        leading = [node for node in self.nodes if node.leads]
        return self.chance.choice(leading if leading and self.chance.random() < 0.9 else self.nodes)

    def _send(self, node: Node, do: Any, *arguments: Any, **options: Any) -> None:
        self.clock.after(self.network.delay_ms(), node.awake, lambda: do(*arguments, **options))

    def _next(self) -> int:
        self._number += 1
        return self._number

    # ---- clients

    def commit(self, at: Node | None = None) -> None:
        """A plain commit."""
        number, node = self._next(), at or self._asked()
        topic_id = self.kafka.topic_id

        def reply(error: ErrorCode | None) -> None:
            self.tell(node.name, "answers commit", f"{number}: {error and error.name}")
            if error is ErrorCode.NONE:
                self.commits += 1
                if topic_id == self.kafka.topic_id:
                    self._for_present[number] = topic_id
                self._known.append(number)
                self._acknowledged.append((number, node))

        self.tell("client", "commits", f"{number} at {node.name}")
        self._send(node, node.commit, number, reply)

    def transact(self, producer_id: int) -> None:
        """A producer begins a transaction, unless one of it is under way."""
        if producer_id in self._attempts:
            return
        producer = self.kafka.producers[producer_id]
        ends_early, topic_id = self.chance.random() < 0.4, self.kafka.topic_id
        attempt = Attempt(self._next(), producer_id, producer.epoch, topic_id, ends_early)
        self._attempts[producer_id] = self._by_number[attempt.number] = attempt
        self.tell(f"producer {producer_id}", "begins", f"{attempt.number}, epoch {attempt.epoch}")
        self._begin(attempt)

    def _begin(self, attempt: Attempt) -> None:
        """AddOffsetsToTxn, where the client has to send it."""
        producer = self.kafka.producers[attempt.producer_id]
        if not producer.bumps:
            error = self.kafka.add(attempt.producer_id, attempt.epoch)
            if error is ErrorCode.CONCURRENT_TRANSACTIONS:
                self.clock.after(AGAIN_MS, self._begin, attempt)
                return
            if error is not ErrorCode.NONE:
                self._over(attempt, error.name)
                return
            attempt.transaction = producer.current
        self._ask(attempt)

    def _ask(self, attempt: Attempt) -> None:
        attempt.tries += 1
        node, adds = self._asked(), self.kafka.producers[attempt.producer_id].bumps
        number, producer_id = attempt.number, attempt.producer_id
        tried = attempt.tries
        self.tell(f"producer {producer_id}", "commits", f"{number} at {node.name}")

        def reply(error: ErrorCode | None) -> None:
            self.tell(node.name, "answers producer", f"{number}: {error and error.name}")
            if attempt.is_over or tried != attempt.tries:
                return
            if error is ErrorCode.NONE:
                attempt.is_acknowledged = True
                if attempt.topic_id == self.kafka.topic_id:
                    self._for_present[number] = attempt.topic_id
                if not attempt.ends_early:
                    self._end(attempt, self.chance.random() < 0.8)
            elif attempt.tries < TRIES:
                self.clock.after(AGAIN_MS, self._again, attempt, tried)
            else:
                self._end(attempt, committed=False)

        def late() -> None:
            if not attempt.is_over and tried == attempt.tries and not attempt.is_acknowledged:
                if attempt.tries < TRIES:
                    self._ask(attempt)
                else:
                    self._end(attempt, committed=False)

        self.clock.after(2_000, late)

        def arrive() -> None:
            if attempt.is_over:
                return  # its connection was closed
            if attempt.ends_early and tried == 1:
                committed = self.chance.random() < 0.5
                self.clock.after(self.chance.randint(0, 40), self._end, attempt, committed)
            node.commit_in_transaction(number, producer_id, attempt.epoch, reply, adds=adds)

        self._send(node, arrive)

    def _again(self, attempt: Attempt, tried: int) -> None:
        if not attempt.is_over and tried == attempt.tries:
            self._ask(attempt)

    def _end(self, attempt: Attempt, committed: bool) -> None:
        """EndTxn."""
        if attempt.is_over:
            return
        attempt.transaction = attempt.transaction or self.kafka.producers[attempt.producer_id].current
        error = self.kafka.end(attempt.producer_id, attempt.epoch, committed=committed)
        if error is ErrorCode.CONCURRENT_TRANSACTIONS:
            self.clock.after(AGAIN_MS, self._end, attempt, committed)
            return
        if error is ErrorCode.NONE and committed and attempt.is_acknowledged:
            self._known_stable.append(attempt.number)
            self.committed += 1
        self.aborted += not committed
        self._over(attempt, f"{'commit' if committed else 'abort'}: {error.name}")

    def _over(self, attempt: Attempt, why: str) -> None:
        self.transactions += 1
        attempt.is_over = True
        del self._attempts[attempt.producer_id]
        self.tell(f"producer {attempt.producer_id}", "has ended", f"{attempt.number}, {why}")

    def read(self, *, is_stable: bool, at: Node | None = None) -> None:
        node = at or self._asked()
        known, known_stable = len(self._known), len(self._known_stable) if is_stable else 0
        topic_id = self.kafka.topic_id

        def reply(number: int | None) -> None:
            self.tell(node.name, "has read" if number is not None else "cannot tell", number)
            if number is None:
                self.unstable += is_stable
                return
            self.reads += 1
            if topic_id != self.kafka.topic_id:
                return
            self._read.append(Read(number, known, known_stable, topic_id))
            if number >= 0:
                self._known.append(number)

        self._send(node, node.read, is_stable=is_stable, reply=reply)

    # ---- the end

    def settle(self) -> None:
        """End all faults. Some node has to lead then, and the last numbers that count are read."""
        self._calm()
        for number, node in enumerate(self.nodes):
            if self.clock.now_ms < node.wakes_ms:
                self.crash(number)
        self.run(CALM_MS)
        for producer_id in self.kafka.producers:
            self.kafka.abort(producer_id)
        for node in self.nodes:
            node.assign(node is self.nodes[0])
        self.run(CALM_MS)
        reads = self.reads
        for _ in range(3):
            self.read(is_stable=True, at=self.nodes[0])
            self.run(500)
        if self.reads != reads + 3:
            raise Wrong("in calm nobody leads, or offsets stay unstable")
        counts, may_count = self._of_present(self._places()), self._of_present(self._strays())
        last = max(counts, key=lambda number: counts[number], default=-1)
        left = self._read[-1].number
        if left != last and may_count.get(left, -1) < counts.get(last, -1):
            raise Wrong(f"{left} is left, and {last} is the last that counts")
        self.run(REPAIR_MS)
        if self.kafka.committed != left:
            raise Wrong(f"the upstream has {self.kafka.committed}, and {left} counts")
        if self.nodes[0].shards.has_open_transactions(0):
            raise Wrong("pending offsets are left, though all transactions have ended")

    def _of_present(self, places: dict[int, int]) -> dict[int, int]:
        """The numbers of the topic that exists now."""
        kept_for, topic_id = self.kafka.kept_for, self.kafka.topic_id
        return {number: place for number, place in places.items() if kept_for[place] == topic_id}

    def _places(self) -> dict[int, int]:
        """The place in the log of each number that counts."""
        places = dict(self.kafka.plain)
        for number, offsets in self.kafka.pending.items():
            transaction = self._by_number[number].transaction
            if transaction is None or not transaction.committed:
                continue
            assert transaction.marker_at is not None
            counted = [each for each in offsets if transaction.begun_at <= each < transaction.marker_at]
            if counted:
                places[number] = counted[-1]
        return places

    def _strays(self) -> dict[int, int]:
        """Places of numbers that may count. If each transaction has the same epoch, and a client begins the
        next one while its request is under way, nobody knows to which of them the request belongs; Apache
        Kafka does not, either.
        """
        found: dict[int, int] = {}
        for number, offsets in self.kafka.pending.items():
            attempt = self._by_number[number]
            producer = self.kafka.producers[attempt.producer_id]
            if attempt.is_acknowledged or producer.bumps:
                continue
            for transaction in producer.all:
                begin, end = transaction.begun_at, transaction.marker_at
                within = [each for each in offsets if end is not None and begin <= each < end]
                if transaction.committed and within:
                    found[number] = within[-1]
        return found

    def judge(self) -> None:
        """Whatever was known is in the log, and counts; reads go forward only."""
        places = self._strays() | self._places()
        for number in (*self._known, *self._known_stable):
            if number not in places:
                raise Wrong(f"{number} was acknowledged or read, and does not count")
        kept_for = self.kafka.kept_for
        for number, topic_id in self._for_present.items():
            if number in places and kept_for[places[number]] != topic_id:
                raise Wrong(f"{number} was acknowledged for another topic than it was committed for")
        for topic_id in set(kept_for.values()):
            self._judge_reads(topic_id, {n: at for n, at in places.items() if kept_for[at] == topic_id})
        self._judge_sent(places)

    def _judge_reads(self, topic_id: TopicId, places: dict[int, int]) -> None:
        """places: where in the log the numbers are that count for the topic of this id."""
        highest = self._highest(self._known, places)
        highest_stable = self._highest(self._known_stable, places)
        for each in self._read:
            if each.topic_id != topic_id:
                continue
            if each.number >= 0 and each.number not in places:
                raise Wrong(f"{each.number} was read, which was committed for another topic")
            place = places[each.number] if each.number >= 0 else -1
            if place < highest[each.known]:
                raise Wrong(f"{each.number} was read, when a later one was known")
            if place < highest_stable[each.known_stable]:
                raise Wrong(f"{each.number} was read as stable, when a later one was committed")

    def _judge_sent(self, places: dict[int, int]) -> None:
        """Nobody sends what is older than a commit that another one has acknowledged."""
        for sent in self._sent:
            for number, by in self._acknowledged[: sent.acknowledged]:
                if by is not sent.by and places[number] > places.get(sent.number, -1):
                    raise Wrong(f"{sent.by.name} has sent {sent.number}, and {by.name} acknowledged {number}")

    def _highest(self, known: list[int], places: dict[int, int]) -> list[int]:
        highest = [-1]
        for number in known:
            highest.append(max(highest[-1], places.get(number, -1)))
        return highest
