"""A broker, its producers and its crashes, all from one seed.

Each transactional id has two producers, which fence each other. Each producer does one thing at a time: it
begins, writes to partitions in a transaction, commits or aborts. Writes become durable one by one; a crash
loses the rest, and every answer on its way. Once all has come to rest, `judge` checks what must hold.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kshim.answering import Broker
from kshim.api.add_partitions_to_txn import add_partitions_to_txn
from kshim.api.end_txn import end_txn
from kshim.api.init_producer_id import init_producer_id
from kshim.api.produce import produce
from kshim.cluster import TRANSACTION_STATE_TOPIC
from kshim.coordination.transaction_runtime import TransactionRuntime
from kshim.producing.markers import write_marker
from kshim.storage.interfaces import Appended
from kshim.storage.memory import MemoryLog, MemoryStore
from kshim.turns.rounds import Rounds
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from schemas.messages.end_txn import EndTxnRequest
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.records.batch import Record, batches, decode_header, encode, records
from schemas.records.end_txn_marker import decode_marker
from tests.api.harness import NOW_MS, collect, context, create, new_broker, result
from tests.simulation.outcome import Outcome, outcome_of

STEPS = 1_500
"""Steps of a history."""
PARTITIONS = 3
AGAIN = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}
"""After these errors a producer sends the same request again."""


class SlowLog(MemoryLog):
    """A log whose appends take their place at once, and become durable, in order, when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.appended: list[tuple[Any, dict[str, Any]]] = []
        self.waiting: list[tuple[Deferred[Appended], Appended]] = []

    def append(self, partition_no: int, batch: Any, **more: Any) -> Deferred[Appended]:
        self.appended.append(((partition_no, bytes(batch)), more))
        done: Deferred[Appended] = Deferred()
        self.waiting.append((done, result(super().append(partition_no, batch, **more))))
        return done

    def settle(self, count: int) -> None:
        """Make the oldest appends durable."""
        for done, appended in [self.waiting.pop(0) for _ in range(min(count, len(self.waiting)))]:
            done.callback(appended)

    def after_crash(self) -> SlowLog:
        """The log that a crash leaves."""
        log = SlowLog()
        for place, more in self.appended[: len(self.appended) - len(self.waiting)]:
            log.append(*place, **more)
        log.settle(len(log.waiting))
        return log


@dataclass(eq=False)
class Transaction:
    """One transaction as its producer has seen it."""

    acknowledged: list[bytes] = field(default_factory=list)
    wanted: str = ""
    """"commit" or "abort", once its producer has asked for it."""
    outcome: str = ""


@dataclass(eq=False)
class Producer:
    """A client of one transactional id."""

    transactional_id: str
    knows_epochs: bool
    ids: tuple[int, int] | None = None
    current: Transaction | None = None
    sequences: dict[int, int] = field(default_factory=dict)
    request: tuple[str, Any] | None = None
    """Sent until it is answered."""
    answers: list[Any] | None = None
    value: tuple[int, bytes] = (0, b"")

    @property
    def name(self) -> str:
        """The id, and 2 for the producer that gets an epoch for each transaction, or 1."""
        return f"{self.transactional_id}{2 if self.knows_epochs else 1}"


class World:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.clock = Clock()
        self.clock.advance(NOW_MS / 1000)
        self.store = MemoryStore()
        self.store.log = SlowLog()
        self.transactions: list[Transaction] = []
        self.happened: list[str] = []
        self.crashes = self.values = self.requests = 0
        self.producers = [
            Producer(name, knows_epochs) for name in ("a", "b") for knows_epochs in (True, False)
        ]
        self.began_s = self.clock.seconds()
        self.broker = self.start()
        self.topic = create(self.broker, "topic", PARTITIONS)
        made = self.broker.cluster.auto_create_topics([TRANSACTION_STATE_TOPIC])
        assert result(made)

    # ---- the server

    def start(self) -> Broker:
        broker = replace(
            new_broker(self.store, transaction_state_log_num_partitions=2),
            clock=self.clock,
            rounds=Rounds(self.clock),
        )
        self.runtime = TransactionRuntime(broker.cluster, broker.log, broker.config, self.clock)
        broker = replace(broker, transactions=self.runtime)
        self.runtime.start(partial(write_marker, broker))
        return broker

    @property
    def log(self) -> SlowLog:
        assert isinstance(self.store.log, SlowLog)
        return self.store.log

    def crash(self) -> None:
        """Only what is durable is left; producers that wait for an answer send their request again."""
        self.crashes += 1
        self.tell("broker", "crashes", f"{len(self.log.waiting)} appends are lost")
        for call in self.clock.getDelayedCalls():
            call.cancel()
        self.store.log = self.log.after_crash()
        self.broker = self.start()
        for producer in self.producers:
            producer.answers = None

    def ask(self, producer: Producer) -> None:
        assert producer.request is not None
        kind, request = producer.request
        function, version = {
            "init": (init_producer_id, 5),
            "add": (add_partitions_to_txn, 3),
            "send": (produce, 12 if producer.knows_epochs else 9),
            "end": (end_txn, 5 if producer.knows_epochs else 4),
        }[kind]
        self.requests += 1
        self.tell(producer.name, "asks", str(request))
        asked = replace(context(version), node_id=self.broker.node_id)
        producer.answers = collect(function(self.broker, asked, request))

    def tell(self, who: str, does: str, what: str) -> None:
        """Add a line to the history."""
        self.happened.append(f"{self.clock.seconds() - self.began_s:9.3f}  {who:8} {does:8} {what}")

    # ---- the producers

    def step(self) -> None:
        """Make one thing happen."""
        choice = self.random.random()
        if choice < 0.01:
            self.crash()
        elif choice < 0.35:
            durable = self.random.randint(1, 3)
            self.tell("log", "settles", f"{durable} of {len(self.log.waiting)} appends")
            self.log.settle(durable)
        elif choice < 0.40:
            self.clock.advance(self.random.choice([0.02, 0.02, 0.02, 1.1, 11.0]))
        else:
            self.act(self.random.choice(self.producers))
        if self.random.random() < 0.7:
            self.clock.advance(0)  # end the reactor's turn; else more happens in it

    def act(self, producer: Producer) -> None:
        if producer.answers:
            self.hear(producer)
        elif producer.answers is None:
            if producer.request is None:
                if producer.ids is None and self.random.random() < 0.9:
                    return  # else the two would only fence each other
                producer.request = self.next_request(producer)
            self.ask(producer)

    def next_request(self, producer: Producer) -> tuple[str, Any]:
        if producer.ids is None:
            request = InitProducerIdRequest(
                transactional_id=producer.transactional_id,
                transaction_timeout_ms=30_000,
                producer_id=-1,
                producer_epoch=-1,
            )
            return "init", request
        if producer.current is not None and self.random.random() < 0.4:
            return self.end(producer)
        if producer.current is None:
            producer.current = Transaction()
            self.transactions.append(producer.current)
        index = self.random.randrange(PARTITIONS)
        self.values += 1
        producer.value = index, b"%d" % self.values
        return self.send(producer) if producer.knows_epochs else self.add(producer)

    def add(self, producer: Producer) -> tuple[str, Any]:
        assert producer.ids is not None
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=producer.transactional_id,
            v3_and_below_producer_id=producer.ids[0],
            v3_and_below_producer_epoch=producer.ids[1],
            v3_and_below_topics=(AddPartitionsToTxnTopic(name="topic", partitions=(producer.value[0],)),),
        )
        return "add", request

    def send(self, producer: Producer) -> tuple[str, Any]:
        assert producer.ids is not None
        index, value = producer.value
        batch = encode(
            [Record(0, NOW_MS, None, value)],
            producer_id=producer.ids[0],
            producer_epoch=producer.ids[1],
            base_sequence=producer.sequences.get(index, 0),
            is_transactional=True,
        )
        data = (PartitionProduceData(index=index, records=batch),)
        request = ProduceRequest(
            transactional_id=producer.transactional_id,
            acks=-1,
            timeout_ms=1_000,
            topic_data=(TopicProduceData(name="topic", partition_data=data),),
        )
        return "send", request

    def end(self, producer: Producer) -> tuple[str, Any]:
        assert producer.ids is not None
        assert producer.current is not None
        producer.current.wanted = self.random.choice(["commit", "commit", "abort"])
        request = EndTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.ids[0],
            producer_epoch=producer.ids[1],
            committed=producer.current.wanted == "commit",
        )
        return "end", request

    def hear(self, producer: Producer) -> None:
        """Take an answer; a producer that is fenced begins again."""
        assert producer.answers is not None
        assert producer.request is not None
        (answer,), producer.answers = producer.answers, None
        self.tell(producer.name, "hears", str(answer))
        kind = producer.request[0]
        error = _error(kind, answer)
        if error in AGAIN:
            return
        producer.request = None
        if error is not ErrorCode.NONE:
            producer.ids = producer.current = None
        elif kind == "init":
            producer.ids, producer.sequences = (answer.producer_id, answer.producer_epoch), {}
        elif kind == "add":
            producer.request = self.send(producer)
        elif kind == "send":
            assert producer.current is not None
            index, value = producer.value
            producer.sequences[index] = producer.sequences.get(index, 0) + 1
            producer.current.acknowledged.append(value)
        else:
            assert producer.current is not None
            producer.current.outcome, producer.current = producer.current.wanted, None
            if producer.knows_epochs:
                producer.ids, producer.sequences = (answer.producer_id, answer.producer_epoch), {}

    # ---- the end

    def rest(self) -> None:
        """Make all writes durable, and run all open transactions out of time."""
        for _ in range(20):
            while self.log.waiting:
                self.log.settle(1)
            self.clock.advance(11)

    def judge(self) -> None:
        """Check that nothing is open, and that each transaction ended as its producer was answered."""
        fates = self.fates()
        for transaction in self.transactions:
            told = {fates[value] for value in transaction.acknowledged}
            assert len(told) <= 1, f"{transaction} is neither committed nor aborted: {told}"
            if told and transaction.outcome:
                assert told == {transaction.outcome}, f"{transaction}: {told}"
            if transaction.wanted != "commit":
                assert told <= {"abort"}, f"{transaction} was committed unasked"

    def fates(self) -> dict[bytes, str]:
        """The fate of each record: committed or aborted."""
        fates: dict[bytes, str] = {}
        for partition in self.topic.partitions:
            offsets = self.log.offsets(partition.partition_no)
            assert offsets.last_stable_offset == offsets.high_watermark, "a transaction is open"
            open_: dict[int, list[bytes]] = {}
            for batch in batches(self.log.read(partition.partition_no, 0, 1 << 30)):
                marker = decode_marker(batch)
                if marker is None:
                    values = [record.value or b"" for record in records(batch)]
                    open_.setdefault(decode_header(batch).producer_id, []).extend(values)
                else:
                    fate = "commit" if marker.committed else "abort"
                    for value in open_.pop(marker.producer_id, []):
                        assert value not in fates, f"{value!r} is there twice"
                        fates[value] = fate
        return fates


def _error(kind: str, answer: Any) -> ErrorCode:
    if kind == "add":
        return ErrorCode(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)
    if kind == "send":
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)
    return ErrorCode(answer.error_code)


def run(seed: int, steps: int = STEPS, *, tell: bool = False) -> Outcome:
    """Run `steps` steps in the world of `seed`, let it come to rest, and judge it."""
    world = World(seed)

    def play() -> None:
        for _ in range(steps):
            world.step()
        world.rest()
        world.judge()

    def counts() -> dict[str, int]:
        outcomes = [each.outcome for each in world.transactions if each.acknowledged]
        return {
            "steps": steps,
            "requests": world.requests,
            "transactions": len(outcomes),
            "committed": outcomes.count("commit"),
            "aborted": outcomes.count("abort"),
            "crashes": world.crashes,
        }

    return outcome_of(seed, play, counts, lambda: world.happened, tell=tell)
