"""Histories of records: what producers might send into a few partitions, and what readers might ask."""

from __future__ import annotations

import random
from typing import Any

from integration.differential.invented.topics import UNKNOWN_ID, ZERO_ID, A, B, TopicsAuthor
from integration.differential.words.admin import SET, New, Of
from integration.differential.words.batches import A_DAY_MS, Batch
from integration.differential.words.history import Epoch, NextSequence, ProducerId
from schemas.api_key import ApiKey

PRODUCERS = ("paul", "petra")
READERS = ("rita", "rob")
GZIP, SNAPPY, LZ4, ZSTD = range(1, 5)
ODD_TIMES = (-1, -5, A_DAY_MS + 5, 1_500_000_000_000, 2**62)
CONFIGS: tuple[tuple[str, str], ...] = (
    ("compression.type", "gzip"),
    ("compression.type", "snappy"),
    ("compression.type", "lz4"),
    ("compression.type", "zstd"),
    ("compression.type", "uncompressed"),
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "compact,delete"),
    ("message.timestamp.type", "LogAppendTime"),
    ("max.message.bytes", "200"),
    ("max.decompressed.message.bytes", "12"),
    ("message.timestamp.before.max.ms", "1000"),
    ("message.timestamp.after.max.ms", "1000"),
)
ODD_HEADERS: tuple[tuple[tuple[str, int], ...], ...] = (
    (("base_offset", 5),),
    (("partition_leader_epoch", 7),),
    (("magic", 0),),
    (("magic", 1),),
    (("magic", 3),),
    (("attributes", 0x08),),
    (("attributes", 0x20),),
    (("attributes", 0x30),),
    (("attributes", 0x40),),
    (("attributes", 0x100),),
    (("attributes", 5),),
    (("attributes", 7),),
    (("attributes", GZIP),),
    (("last_offset_delta", -1),),
    (("last_offset_delta", 7),),
    (("last_offset_delta", 2**31 - 1),),
    (("records_count", 0),),
    (("records_count", -1),),
    (("records_count", 7),),
    (("last_offset_delta", 7), ("records_count", 8)),
    (("producer_id", -2),),
    (("producer_id", 2**50), ("base_sequence", -1)),
    (("producer_id", 2**50), ("producer_epoch", -1), ("base_sequence", 0)),
    (("producer_epoch", 3), ("base_sequence", 3)),
    (("batch_length", 13),),
    (("batch_length", 40),),
    (("batch_length", -1),),
)


class Records(TopicsAuthor):
    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self.producers = PRODUCERS[: chance.choice((0, 1, 1, 2))]
        self.topics = {
            self.produce: 8,
            self.read: 4,
            self.read_in_a_session: 2,
            self.list_offsets: 2,
            self.ends_of_epochs: 1,
            self.delete_records: 0.7,
            self.describe_producers: 0.7,
            self.init_producer: 0.5 if self.producers else 0,
            self.change_config: 0.4,
            self.make_again: 0.2,
        }
        self.weigh()

    def write(self) -> None:
        news = (New(name, count, configs=self.some_configs()) for name, count in self.partitions.items())
        self.say("create_topics", "admin", *news, era=4)
        for name in self.producers:
            self.init_producer(name)
        self.tell(self.chance.randint(5, 20))
        places = [(name, index) for name, count in self.partitions.items() for index in range(count)]
        everything = [(topic, index, 0) for topic, index in places]
        self.say("list_offsets", "rita", *((*place, -2) for place in places), era=7)
        self.say("read", "rita", *everything, isolation=self.any(0, 1), era=12)
        self.say("describe_producers", "admin", *places)

    def some_configs(self) -> tuple[tuple[str, str], ...]:
        return tuple(dict(self.some(CONFIGS, 0, 2)).items()) if self.chance.random() < 0.7 else ()

    # ---- what producers say

    def init_producer(self, name: str = "") -> None:
        name = name or self.chance.choice(self.producers)
        own = {"id": ProducerId(name), "epoch": Epoch(name)} if self.slips(2) else {}
        self.ask(ApiKey.INIT_PRODUCER_ID, "init_producer", name, transaction=None, **own)

    def produce(self) -> None:
        owner = self.any(*self.producers, "") if self.producers else ""
        options: dict[str, Any] = {}
        acks = self.good_or(self.any(-1, 1), 0, 0, 2, -2, factor=0.5)
        if acks != -1:
            options["acks"] = acks
        if acks == 0:
            options |= {"over": f"{owner} {len(self.said)}", "wait": False}
        if self.slips(0.3):
            options["transaction"] = self.any("", "some")
        places = self.places(3) if self.chance.random() < 0.4 else [self.place()]
        if self.slips(0.2):
            self.chance.shuffle(places)
        entries = [(*place, self.what(owner, *place)) for place in places]
        if any(what is None for *_, what in entries):
            entries = entries[:1]
        self.ask(ApiKey.PRODUCE, "produce", owner or "anna", *map(self.maybe_by_id, entries), **options)

    def maybe_by_id(self, entry: tuple[str, int, Any]) -> tuple[Any, int, Any]:
        topic, index, what = entry
        return self.good_or(topic, UNKNOWN_ID, ZERO_ID, factor=0.1), index, what

    def what(self, owner: str, topic: str, index: int) -> Any:
        if self.slips(0.2):
            return self.any(None, b"", b"\0" * 10, b"\0" * 61, b"garbage" * 12)
        batch = self.batch(owner, topic, index)
        if self.slips(0.2):
            batch["tail"] = self.any(b"\0", b"\0" * 20, self.made(self.batch(owner, topic, index)))
        return self.made(batch)

    def made(self, fields: dict[str, Any]) -> Batch:
        return Batch(**fields)

    def batch(self, owner: str, topic: str, index: int) -> dict[str, Any]:
        """The fields of a batch that is mostly good."""
        fields: dict[str, Any] = {"records": self.records()}
        if self.chance.random() < 0.4:
            fields["codec"] = self.any(GZIP, SNAPPY, LZ4, ZSTD)
        if owner:
            later = self.good_or(0, 0, -1, 1, 5, -2)
            fields |= {
                "producer_id": ProducerId(owner),
                "epoch": Epoch(owner, self.good_or(0, 1, -1, factor=0.5)),
                "sequence": NextSequence(owner, topic, index, later),
            }
        elif self.slips(0.3):
            fields |= {"producer_id": 2**45, "epoch": 0, "sequence": self.any(0, 0, 3, 2**31 - 1)}
        fields["at"] = self.good_or(self.any(0, 0, 50, 1000, 5000), *ODD_TIMES, factor=0.5)
        if self.slips(0.7):
            fields |= self.oddity(len(fields["records"]), fields.get("codec", 0))
        return fields

    def oddity(self, count: int, codec: int) -> dict[str, Any]:
        kind = self.chance.randrange(8)
        if kind < 3:
            return {"header": self.chance.choice(ODD_HEADERS)}
        if kind == 3:
            return {"crc": 1}
        if kind == 4:
            return {"cut": self.any(1, 5, 30, 60, 66)}
        if kind == 5:
            return {"is_transactional": True}
        if kind == 6 and count > 1 and not codec:  # kshim only looks at the lengths of compressed records
            deltas = list(range(count))
            deltas[self.chance.randrange(count)] += self.any(1, 3, -1)
            return {"deltas": tuple(deltas)}
        return {"damage": 1} if codec else {"records": ()}

    def records(self) -> tuple[Any, ...]:
        is_keyed = self.chance.random() < 0.6
        some = []
        for number in range(self.any(1, 1, 2, 3, 5)):
            key = self.any(b"k1", b"k2", b"k3") if is_keyed else None
            if self.slips(0.3):
                key = self.any(None, b"")
            value = self.good_or(b"v%d" % number * self.any(1, 1, 20), None, b"", factor=0.5)
            later_ms = self.good_or(number * self.any(0, 1, 10), -3, 7_200_000, factor=0.3)
            some.append((later_ms, key, value))
        return tuple(some)

    # ---- what readers ask

    def read(self, client: str = "", **options: Any) -> None:
        client = client or self.any(*READERS)
        if self.chance.random() < 0.3:
            options["isolation"] = 1
        if self.slips(0.3):
            options["isolation"] = self.any(2, -1)
        if self.chance.random() < 0.2:
            options["max_bytes"] = self.any(0, 1, 100, 300, -1)
        if self.chance.random() < 0.2:
            options["partition_max_bytes"] = self.any(0, 1, 100, 300, -1)
        if self.slips(0.1):
            options["replica"] = self.any(-2, 1, 5)
        entries = [self.position(topic, index) for topic, index in self.places()]
        self.ask(ApiKey.FETCH, "read", client, *entries, **options)

    def position(self, topic: str, index: int) -> tuple[Any, ...]:
        """(topic, partition, offset[, more]) to read from."""
        offset = self.good_or(self.any(0, 0, 1, 2, 3, 5, 8), -1, 99, -2, 2**63 - 1, factor=0.5)
        more: dict[str, Any] = {}
        if self.slips():
            more["current_leader_epoch"] = self.any(0, 0, 1, -2)
        if self.slips():
            more["last_fetched_epoch"] = self.any(0, 0, 1, -2)
        if self.slips(0.3):
            more["log_start_offset"] = self.any(0, 5)
        named = self.by_name_or_id(topic)
        return (named, index, offset, more) if more else (named, index, offset)

    def read_in_a_session(self) -> None:
        client = self.any(*READERS)
        if self.chance.random() < 0.4:
            self.read(client, session=(0, 0))
            return
        entries = [self.position(*place) for place in self.places(2)] if self.chance.random() < 0.4 else []
        options: dict[str, Any] = {"forget": (self.place(),)} if self.chance.random() < 0.2 else {}
        if self.slips():
            options["later"] = self.any(1, -1)
        if self.chance.random() < 0.2:
            options["max_bytes"] = self.any(1, 100, 300)
        self.ask(ApiKey.FETCH, "go_on_reading", client, *entries, **options)

    def list_offsets(self) -> None:
        options: dict[str, Any] = {"isolation": self.any(1, 1, 2)} if self.chance.random() < 0.3 else {}
        if self.slips(0.2):
            options["replica"] = self.any(-2, 1, 5)
        entries = []
        for place in self.places():
            special = self.any(-1, -2, -3, -4, -5, -6)
            at = self.good_or(self.any(special, special, 0, 1, 50, 1000, 5003), -7, -9, 2**62)
            entries.append((*place, at, self.any(0, 1, -2)) if self.slips(0.5) else (*place, at))
        self.ask(ApiKey.LIST_OFFSETS, "list_offsets", self.any(*READERS), *entries, **options)

    def ends_of_epochs(self) -> None:
        options: dict[str, Any] = {"replica": self.any(-1, 1)} if self.slips() else {}
        entries = []
        for place in self.places():
            epoch = self.good_or(0, 1, -1, -2, 7)
            entries.append((*place, epoch, self.any(0, 1, -2)) if self.slips() else (*place, epoch))
        self.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, "ends_of_epochs", self.any(*READERS), *entries, **options)

    # ---- what administrators say

    def delete_records(self) -> None:
        entries = [(*place, self.good_or(self.any(-1, 0, 1, 2), 99, -2)) for place in self.places(2)]
        self.ask(ApiKey.DELETE_RECORDS, "delete_records", "admin", *entries)

    def describe_producers(self) -> None:
        self.ask(ApiKey.DESCRIBE_PRODUCERS, "describe_producers", "admin", *self.places())

    def change_config(self) -> None:
        topic = self.any(A, B)
        name, value = self.chance.choice(CONFIGS)
        self.say("change_configs", "admin", Of(2, topic, ((name, SET, value),)))

    def make_again(self) -> None:
        topic = self.any(A, B)
        self.say("delete_topics", "admin", topic)
        if self.chance.random() < 0.8:
            self.say(
                "create_topics", "admin", New(topic, self.partitions[topic], configs=self.some_configs())
            )
