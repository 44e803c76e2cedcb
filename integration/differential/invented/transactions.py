"""Histories of transactional producers, both clients of Kafka 3 (`OLD`) and of Kafka 4 (`NEW`).

Old ones add partitions and groups to a transaction before they write to them, and keep their epoch. New ones
just write, and get a new epoch for each transaction (KIP-890).
"""

from __future__ import annotations

import random
from typing import Any

from integration.differential.invented.topics import TopicsAuthor
from integration.differential.words.admin import New
from integration.differential.words.batches import Batch
from integration.differential.words.history import GROUP, TRANSACTION, Epoch, NextSequence, ProducerId
from schemas.api_key import ApiKey

PRODUCERS = ("paul", "petra")
OLD, NEW = "old", "new"
VERSIONS = {
    OLD: {
        ApiKey.PRODUCE: range(3, 12),
        ApiKey.END_TXN: range(5),
        ApiKey.TXN_OFFSET_COMMIT: range(5),
    },
    NEW: {
        ApiKey.PRODUCE: range(12, 14),
        ApiKey.END_TXN: range(5, 6),
        ApiKey.TXN_OFFSET_COMMIT: range(5, 7),
    },
}
STATES = ("Empty", "Ongoing", "CompleteCommit", "CompleteAbort", "Dead", "Bored")


class Transactions(TopicsAuthor):
    """Writes about one or two transactional producers."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self.producers = PRODUCERS[: chance.choice((1, 1, 2))]
        self.styles = {name: chance.choice((OLD, NEW)) for name in self.producers}
        """OLD or NEW, by producer."""
        self.shares = chance.random() < 0.2
        self.topics = {
            self.transact: 5,
            self.init_producer: 1,
            self.add_partitions: 2,
            self.send: 5,
            self.add_offsets: 0.7,
            self.commit_offsets: 1.5,
            self.end: 3,
            self.read: 2,
            self.list_offsets: 1,
            self.look: 2,
            self.add_as_broker: 0.5,
            self.write_markers: 0.3,
            self.fetch_offsets: 0.7,
        }
        self.weigh()

    def write(self) -> None:
        news = (New(name, count) for name, count in self.partitions.items())
        self.say("create_topics", "admin", *news, era=4)
        for name in self.producers:
            if not self.slips():
                self.init_producer(name)
        self.tell(self.chance.randint(6, 24))
        places = [(name, index) for name, count in self.partitions.items() for index in range(count)]
        for name in self.producers:
            self.say("end_transaction", name, self.any(True, False), **self.transaction(name))
        self.say("describe_transactions", "admin", *map(self.own_transaction, self.producers))
        for isolation in (0, 1):
            everything = [(topic, index, 0) for topic, index in places]
            self.say("read", "rita", *everything, isolation=isolation, era=12)
        self.say("describe_producers", "admin", *places)

    # ---- who sends, and in which style

    def producer(self) -> str:
        return self.chance.choice(self.producers)

    def own_transaction(self, name: str) -> str:
        is_own = name == PRODUCERS[1] and not self.shares
        return f"{TRANSACTION}-{name}" if is_own else TRANSACTION

    def transaction(self, name: str) -> dict[str, Any]:
        """The options that name a producer's transaction."""
        own = self.own_transaction(name)
        return {} if own == TRANSACTION else {"transaction": own}

    def as_producer(self, name: str) -> dict[str, Any]:
        """The options for the sender's identity, where it is not simply the producer's."""
        options = self.transaction(name)
        if self.slips(0.5):
            options["epoch"] = Epoch(name, self.any(1, -1, 9))
        if self.slips(0.3):
            options["id"] = self.any(2**41, -1, ProducerId(self.producer()))
        if self.slips(0.3):
            options["transaction"] = self.any("", TRANSACTION, TRANSACTION + "-nobody")
        return options

    def ask_in_style(self, api: ApiKey, verb: str, name: str, *args: Any, **options: Any) -> None:
        style = self.styles[name]
        if self.slips(0.2):
            style = self.any(OLD, NEW)
        self.say(verb, name, *args, **options, era=self.chance.choice(VERSIONS[style][api]))

    # ---- what producers say

    def init_producer(self, name: str = "") -> None:
        name = name or self.producer()
        options = self.transaction(name)
        if self.chance.random() < 0.3:
            options |= {"id": ProducerId(name), "epoch": Epoch(name, self.good_or(0, -1, 1))}
        if self.slips(0.3):
            options |= self.any(
                {"timeout_ms": 0},
                {"timeout_ms": -1},
                {"timeout_ms": 900_001},
                {"transaction": ""},
                {"id": 2**41, "epoch": 0},
                {"id": ProducerId(name), "epoch": -1},
                {"id": -1, "epoch": 3},
            )
        self.ask(ApiKey.INIT_PRODUCER_ID, "init_producer", name, **options)

    def transact(self) -> None:
        """A transaction, mostly from beginning to end."""
        name = self.producer()
        places = self.places(3)
        if self.styles[name] == OLD and not self.slips():
            self.add_partitions(name, places)
        for _ in range(self.chance.randint(1, 2)):
            self.send(name, self.some(places))
        if self.chance.random() < 0.3:
            if self.styles[name] == OLD and not self.slips():
                self.add_offsets(name)
            self.commit_offsets(name)
        if self.chance.random() < 0.7:
            self.end(name)

    def add_partitions(self, name: str = "", places: list[tuple[str, int]] | None = None) -> None:
        name = name or self.producer()
        version = self.chance.randrange(4)
        options = self.as_producer(name)
        self.say("add_partitions", name, *(places or self.places()), **options, era=version)

    def send(self, name: str = "", places: list[tuple[str, int]] | None = None) -> None:
        name = name or self.producer()
        options = self.as_producer(name)
        transaction = options.pop("transaction", TRANSACTION)
        if self.slips(0.2):
            transaction = None
        entries = [(*place, self.batch(name, place, options)) for place in sorted(places or self.places(2))]
        more = {"acks": 1} if self.chance.random() < 0.1 else {}
        self.ask_in_style(ApiKey.PRODUCE, "produce", name, *entries, transaction=transaction, **more)

    def batch(self, name: str, place: tuple[str, int], who: dict[str, Any]) -> Batch:
        count = self.any(1, 1, 2)
        is_transactional = self.good_or(True, False, factor=0.3)
        # After a batch with a newer epoch, Apache Kafka could not end the transaction.
        epoch = who.get("epoch", Epoch(name)) if is_transactional else Epoch(name)
        return Batch(
            records=tuple((0, None, b"%d" % number) for number in range(count)),
            producer_id=who.get("id", ProducerId(name)),
            epoch=epoch,
            sequence=NextSequence(name, *place, self.good_or(0, -1, 1, 5, factor=0.5)),
            is_transactional=is_transactional,
        )

    def add_offsets(self, name: str = "") -> None:
        name = name or self.producer()
        self.ask(ApiKey.ADD_OFFSETS_TO_TXN, "add_offsets", name, **self.as_producer(name))

    def commit_offsets(self, name: str = "") -> None:
        name = name or self.producer()
        options = self.as_producer(name)
        options["offsets"] = {place: self.any(0, 7, 2**40) for place in self.places(2)}
        self.ask_in_style(ApiKey.TXN_OFFSET_COMMIT, "txn_commit", name, **options)

    def end(self, name: str = "") -> None:
        name = name or self.producer()
        is_committed = self.chance.random() < 0.6
        self.ask_in_style(ApiKey.END_TXN, "end_transaction", name, is_committed, **self.as_producer(name))
        if self.slips():
            again = is_committed if self.chance.random() < 0.5 else not is_committed
            self.ask_in_style(ApiKey.END_TXN, "end_transaction", name, again, **self.transaction(name))

    # ---- what others say

    def read(self) -> None:
        entries = [(*place, self.any(0, 0, 1, 2, 5)) for place in self.places()]
        isolation = self.any(1, 1, 0)
        self.ask(ApiKey.FETCH, "read", "rita", *entries, isolation=isolation)

    def list_offsets(self) -> None:
        entries = [(*place, self.any(-1, -1, -2, -3, 0)) for place in self.places()]
        isolation = self.any(1, 1, 0)
        self.ask(ApiKey.LIST_OFFSETS, "list_offsets", "rita", *entries, isolation=isolation)

    def look(self) -> None:
        kind = self.chance.randrange(3)
        if kind == 0:
            names = [self.own_transaction(name) for name in self.producers]
            names += [self.any("", TRANSACTION, TRANSACTION + "-nobody")] if self.slips() else []
            self.say("describe_transactions", "admin", *names)
        elif kind == 1:
            self.say("describe_producers", "admin", *self.places())
        else:
            self.list_transactions()

    def list_transactions(self) -> None:
        options: dict[str, Any] = {}
        if self.chance.random() < 0.5:
            options["states"] = tuple(self.some(STATES))
        if self.slips():
            options["duration_ms"] = self.any(0, 100_000, -2)
        if self.chance.random() < 0.4:
            options["pattern"] = self.any("", "nothing", GROUP + ".*", GROUP, ".*petra", "(")
        self.ask(
            ApiKey.LIST_TRANSACTIONS,
            "list_transactions",
            "admin",
            *(ProducerId(name) for name in self.some(self.producers)),
            **options,
        )

    def fetch_offsets(self) -> None:
        options = {"require_stable": True} if self.chance.random() < 0.2 else {}
        places = tuple(self.places())
        self.ask(ApiKey.OFFSET_FETCH, "fetch", "admin", places, **options)

    def add_as_broker(self) -> None:
        name = self.producer()
        options = self.as_producer(name)
        if self.chance.random() < 0.7:
            options["verify_only"] = True
        self.say("add_as_broker", name, *self.places(), **options, era=self.any(4, 5))

    def write_markers(self) -> None:
        """Never with a later epoch: Apache Kafka could not end the next transaction."""
        name = self.producer()
        options: dict[str, Any] = {"committed": self.any(True, False)}
        if self.slips():
            options["epoch"] = Epoch(name, -1)
        if self.slips(0.5):
            options["coordinator_epoch"] = -1
        if self.chance.random() < 0.2:
            options["transaction_version"] = 1
        self.ask(ApiKey.WRITE_TXN_MARKERS, "write_markers", name, *self.places(), **options)
