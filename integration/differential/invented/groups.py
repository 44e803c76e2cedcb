"""Histories of a group: what its members might say, and producers that commit its offsets.

In some of them time-outs matter. Their members have equal time-outs, some of them SHORT_MS, so that it does
not matter whose runs out first (v0 of JoinGroup, which has one time-out for both, is left out). Some have a
single pause, which ends midway between the second and the third moment at which anything could run out. The
others have a pulse of shorter pauses: two of them are shorter than a time-out and three are longer, so a
member that speaks in between stays. `pace` knows how much time the rest may take.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from integration.differential.invented.author import Author
from integration.differential.words.history import (
    ERAS,
    GROUP,
    NO_TOPIC,
    OTHER_TOPIC,
    TOPIC,
    TRANSACTION,
    Epoch,
    Generation,
    Id,
    ProducerId,
)

CLIENTS = ("alice", "bob", "carol", "dave")
PRODUCERS = ("paul", "petra")
PROTOCOLS = ("range", "roundrobin", "sticky")
SHORT_MS = 2_800
PAUSE_MS = 6_000
PULSE_MS = 1_120
PULSES = 4
"""After this many, nothing is as close to a time-out as after two."""
LONG_MS = 60_000
REPEATED = 4
"""How many of the last requests may be repeated."""
PLACES = ((TOPIC, 0), (TOPIC, 1), (OTHER_TOPIC, 0), (OTHER_TOPIC, 1))
STRANGE_PLACES = ((NO_TOPIC, 0), (TOPIC, 9), (OTHER_TOPIC, -1), ("", 0))


class Groups(Author):
    """One group, its members, an administrator, and sometimes producers."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self.is_timed = chance.random() < 0.25
        self.known_eras = [era for era in ERAS if era or not self.is_timed]
        self.era = chance.choice(self.known_eras)
        self.carelessness = chance.choice((0.02, 0.1, 0.1, 0.3))
        self.clients = CLIENTS[: chance.choice((1, 2, 2, 3, 3, 4))]
        self.type = chance.choice(("consumer",) * 4 + ("connect",))
        statics = chance.choice((0.0, 0.0, 0.5, 1.0))
        self.instances = {name: name for name in self.clients if chance.random() < statics}
        mixed = chance.random() < 0.3
        self.eras = {name: chance.choice(self.known_eras) for name in (*self.clients, "admin") if mixed}
        self.protocols = {name: self.some_protocols() for name in self.clients}
        self.times = self.some_times()
        self.numbers = dict.fromkeys(self.clients, 1)
        self.producers: Sequence[str] = ()
        self.topics = {
            self.arrive: 5,
            self.rejoin: 5,
            self.sync: 6,
            self.everybody_rejoins: 2,
            self.everybody_syncs: 4,
            self.heartbeat: 4,
            self.leave: 2,
            self.commit: 4,
            self.doubt: 2,
            self.fetch: 1,
            self.look: 2,
            self.delete: 0.5,
            self.offset_delete: 0.7,
            self.hang_up: 0.5,
            self.cut: 0.15,
            self.repeat: 2,
        }
        self.has_pulse = self.is_timed and chance.random() < 0.5
        if chance.random() < 0.25:
            self.producers = PRODUCERS[: chance.choice((1, 1, 2))]
            self.topics |= {
                self.init_producer: 1,
                self.add_offsets: 2,
                self.add_partitions: 1,
                self.txn_commit: 6,
                self.end_transaction: 3,
            }
        for topic in self.topics:
            self.topics[topic] *= chance.choice((0.2, 1, 1, 3))

    def write(self) -> None:
        self.begin()
        if self.has_pulse:
            for _ in range(PULSES):
                self.tell(self.chance.randint(0, 1))
                self.some_heartbeats()
                self.say("pause", PULSE_MS)
            self.tell(1)
        elif self.is_timed:
            self.tell(self.chance.randint(2, 6))
            self.say("pause", PAUSE_MS)
            self.tell(self.chance.randint(1, 5))
        else:
            self.tell(self.chance.randint(4, 24))
        self.say("pause", 0)
        self.say("describe")
        self.say("fetch", "admin", None)

    def begin(self) -> None:
        """Half of the histories begin with a stable group; producers mostly begin with an id."""
        for name in self.producers:
            if self.chance.random() < 0.9:
                self.say("init_producer", name, **self.transaction(name))
        if self.chance.random() < 0.5:
            return
        for name in self.clients:
            self.arrive(name, careful=True)
        if len(self.clients) > 1:
            self.everybody_rejoins(careful=True)
        self.everybody_syncs(careful=True)

    # ---- what clients say

    def request(self, verb: str, client: str, *args: Any, **options: Any) -> None:
        if client in self.eras:
            options["era"] = self.eras[client]
        if self.slips(0.3):
            # All histories share the group without a name, and a commit would create it.
            options["group"] = self.chance.choice((GROUP + "-b", "" if verb != "commit" else GROUP + "-c"))
        self.say(verb, client, *args, wait=False, **options)

    def arrive(self, client: str = "", careful: bool = False) -> None:
        client = client or self.anybody()
        options = self.joining(client, careful)
        self.request("join", client, *self.protocols[client], **options, over=self.new_connection(client))
        needs_id = self.eras.get(client, self.era) >= 4 and "instance" not in options
        if needs_id and (careful or self.chance.random() < 0.9):
            over = self.new_connection(client)
            self.request("rejoin", client, *self.protocols[client], **options, over=over)

    def rejoin(self, client: str = "", careful: bool = False) -> None:
        client = client or self.anybody()
        options = self.joining(client, careful)
        if not careful and self.chance.random() < 0.2:
            self.protocols[client] = self.some_protocols()
        if not careful and self.chance.random() < 0.3:
            options["tells"] = f" {self.chance.randint(2, 4)}"
        if self.slips():
            options["id"] = self.somebody_else(client)
        over = self.new_connection(client)
        self.request("rejoin", client, *self.protocols[client], **options, over=over)

    def joining(self, client: str, careful: bool) -> dict[str, Any]:
        """The options of a join that describe the client."""
        session_ms, rebalance_ms = self.times
        options: dict[str, Any] = {"session_ms": session_ms, "rebalance_ms": rebalance_ms}
        if self.type != "consumer":
            options["type"] = self.type
        if client in self.instances:
            options["instance"] = client
        if not careful and self.slips():
            options["instance"] = self.some_instance()
        if not careful and self.slips(0.3):
            options |= self.chance.choice(
                (
                    {"type": "other"},
                    {"type": ""},
                    {"protocols": ()},
                    {"session_ms": 299},
                    {"session_ms": 1_800_001},
                    {"session_ms": -1},
                    {"reason": "tired"},
                )
            )
        return options

    def sync(self, client: str = "", careful: bool = False) -> None:
        client = client or self.anybody()
        options: dict[str, Any] = {"over": self.new_connection(client)}
        options |= {} if careful else self.as_whom(client)
        if self.chance.random() < 0.8 or careful:
            options["assign"] = {name: f"{client}: {name}".encode() for name in self.clients}
        if self.type != "consumer":
            options["type"] = self.type
        options["protocol"] = self.likely_protocol()
        if client in self.instances:
            options.setdefault("instance", client)
        if not careful and self.slips(0.5):
            options |= self.chance.choice(
                ({"protocol": None}, {"type": None}, {"type": "other"}, {"protocol": "other"}, {"assign": {}})
            )
        generation = Generation(client) if careful else self.some_generation(client)
        self.request("sync", client, generation, **options)

    def everybody_rejoins(self, careful: bool = False) -> None:
        for name in self.shuffled(self.clients):
            self.rejoin(name, careful)
            self.maybe_repeat()

    def everybody_syncs(self, careful: bool = False) -> None:
        for name in self.shuffled(self.clients):
            self.sync(name, careful)
            self.maybe_repeat()

    def some_heartbeats(self) -> None:
        for name in self.clients:
            if self.chance.random() < 0.7:
                self.heartbeat(name)

    def heartbeat(self, client: str = "") -> None:
        client = client or self.anybody()
        self.request("heartbeat", client, self.some_generation(client), **self.as_whom(client))

    def leave(self) -> None:
        client = self.anybody()
        kind = self.chance.random()
        if kind < 0.6:
            self.request("leave", client)
        elif kind < 0.8:
            self.request("leave", "admin", ("", self.some_instance()))
        else:
            some = [self.leaver() for _ in range(self.chance.randint(1, 3))]
            self.request("leave", "admin", *some)

    def leaver(self) -> tuple[str | Id, str | None]:
        client = self.anybody()
        id = self.somebody_else(client) if self.slips() else Id(client)
        return id, self.some_instance() if self.slips() else self.instances.get(client)

    def commit(self) -> None:
        options: dict[str, Any] = {"offsets": {place: self.some_offset() for place in self.some_places()}}
        if self.slips():
            options["metadata"] = self.chance.choice(("", None, "é"))
        if self.chance.random() < 0.2:
            options["leader_epoch"] = self.chance.choice((0, 3))
        if self.chance.random() < 0.3:
            self.request("commit", "admin", **options)
            return
        client = self.anybody()
        self.request(
            "commit",
            client,
            self.some_generation(client),
            **{"id": Id(client)} | self.as_whom(client),
            **options,
        )

    def doubt(self) -> None:
        """A member that is wrong about one thing in each of its requests."""
        client = self.anybody()
        generation: int | Generation = Generation(client)
        whom: dict[str, Any] = {"instance": client} if client in self.instances else {}
        match self.chance.randrange(4):
            case 0 | 1:
                generation = self.chance.choice((Generation(client, 1), Generation(client, -1)))
            case 2:
                whom["id"] = self.somebody_else(client)
            case 3:
                whom["instance"] = self.some_instance()
        over = self.new_connection(client)
        type = {} if self.type == "consumer" else {"type": self.type}
        protocol = self.likely_protocol()
        self.request("heartbeat", client, generation, **whom)
        self.request("commit", client, generation, **{"id": Id(client)} | whom)
        self.request("sync", client, generation, **whom, **type, protocol=protocol, over=over)

    def fetch(self) -> None:
        options = {"require_stable": True} if self.chance.random() < 0.3 else {}
        has_all = self.eras.get("admin", self.era) >= 2
        places = None if has_all and self.chance.random() < 0.3 else tuple(self.some_places())
        self.request("fetch", "admin", places, **options)

    def look(self) -> None:
        kind = self.chance.randrange(6)
        if kind < 2:
            self.say("pause", 0)
        elif kind < 4:
            self.say("describe", era=self.chance.choice(ERAS))
        elif kind == 4:
            self.say("list_groups", era=self.chance.choice(ERAS))
        else:
            self.say("find_coordinator", era=self.chance.choice(ERAS))

    def delete(self) -> None:
        others = (GROUP + "-b",) if self.chance.random() < 0.3 else ()
        self.say("delete", "admin", *((GROUP, *others) if others else ()), era=self.chance.choice(ERAS))

    def offset_delete(self) -> None:
        self.request("offset_delete", "admin", *self.some_places())

    def hang_up(self) -> None:
        client = self.anybody()
        last = self.numbers[client]
        self.say("hang_up", f"{client} {self.chance.randint(max(last - 2, 2), max(last, 2))}")

    def repeat(self) -> None:
        """A client whose connection broke sends the same request again."""
        asked = [said for said in self.said[-REPEATED:] if said.verb in ("rejoin", "sync", "commit")]
        if asked and (said := self.chance.choice(asked)).args[0] in self.numbers:
            over = self.new_connection(said.args[0])
            self.said.append(replace(said, options=tuple({**dict(said.options), "over": over}.items())))

    def maybe_repeat(self) -> None:
        if self.chance.random() < 0.1:
            self.repeat()

    def cut(self) -> None:
        """A request that is cut short."""
        client = self.anybody()
        over = self.new_connection(client)
        self.request("heartbeat", client, Generation(client), cut=self.chance.randint(1, 6), over=over)

    # ---- what producers say

    def init_producer(self) -> None:
        name = self.chance.choice(self.producers)
        options = self.transaction(name)
        if self.chance.random() < 0.3:
            options |= {"id": ProducerId(name), "epoch": Epoch(name, -1 if self.slips() else 0)}
        self.say("init_producer", name, **options)

    def add_offsets(self) -> None:
        name = self.chance.choice(self.producers)
        group = {"group": GROUP + "-b"} if self.chance.random() < 0.1 else {}
        self.say("add_offsets", name, **self.as_producer(name), **group)

    def add_partitions(self) -> None:
        name = self.chance.choice(self.producers)
        self.say("add_partitions", name, *self.some_places(), **self.as_producer(name))

    def txn_commit(self) -> None:
        name = self.chance.choice(self.producers)
        options = self.as_producer(name)
        options["offsets"] = {place: self.some_offset() for place in self.some_places()}
        if self.chance.random() < 0.5:
            self.say("txn_commit", name, **options)
            return
        client = self.anybody()
        options["member"] = self.somebody_else(client) if self.slips() else Id(client)
        if client in self.instances and self.chance.random() < 0.5:
            options["instance"] = client
        self.say("txn_commit", name, self.some_generation(client), **options)

    def end_transaction(self) -> None:
        name = self.chance.choice(self.producers)
        self.say("end_transaction", name, self.chance.random() < 0.6, **self.as_producer(name))

    def as_producer(self, name: str) -> dict[str, Any]:
        options = self.transaction(name)
        if self.slips():
            options["epoch"] = Epoch(name, self.chance.choice((1, -1)))
        if self.slips():
            options["id"] = self.chance.choice((4711, ProducerId(self.chance.choice(self.producers))))
        return options

    def transaction(self, name: str) -> dict[str, Any]:
        """The transaction's options: the second producer mostly has its own transaction, the first has the
        common one."""
        is_own = name == PRODUCERS[1] and not self.slips()
        options: dict[str, Any] = {"transaction": f"{TRANSACTION}-{name}"} if is_own else {}
        return options | ({"era": self.eras["admin"]} if "admin" in self.eras else {})

    # ---- what chance decides

    def anybody(self) -> str:
        return self.chance.choice(self.clients)

    def shuffled(self, names: Iterable[str]) -> list[str]:
        names = list(names)
        self.chance.shuffle(names)
        return names

    def new_connection(self, client: str) -> str:
        """A connection for requests that may have to wait, so that nothing is queued behind them."""
        self.numbers[client] += 1
        return f"{client} {self.numbers[client]}"

    def some_protocols(self) -> tuple[str, ...]:
        count = self.chance.choice((1, 1, 2, 3))
        some = {"range", *self.chance.sample(PROTOCOLS, count)} if count > 1 else {"range"}
        if self.chance.random() < 0.1:
            some = {self.chance.choice(PROTOCOLS)}
        return tuple(self.chance.sample(sorted(some), len(some)))

    def likely_protocol(self) -> str:
        return next(
            (name for name in PROTOCOLS if all(name in some for some in self.protocols.values())),
            PROTOCOLS[0],
        )

    def some_times(self) -> tuple[int, int]:
        if not self.is_timed:
            return LONG_MS, LONG_MS
        return self.chance.choice(((SHORT_MS, SHORT_MS), (LONG_MS, SHORT_MS), (SHORT_MS, LONG_MS)))

    def as_whom(self, client: str) -> dict[str, Any]:
        """The options for the sender's identity, where it is not simply the client's."""
        options: dict[str, Any] = {}
        if self.slips():
            options["id"] = self.somebody_else(client)
        if self.slips():
            options["instance"] = self.some_instance()
        elif client in self.instances and self.chance.random() < 0.8:
            options["instance"] = client
        return options

    def somebody_else(self, client: str) -> str | Id:
        return self.chance.choice((Id(client, 1), Id(self.anybody()), "made-up", ""))

    def some_instance(self) -> str | None:
        return self.chance.choice((*self.instances, "nobody", None))

    def some_generation(self, client: str) -> int | Generation:
        if not self.slips():
            return Generation(client)
        return self.chance.choice(
            (Generation(client, 1), Generation(client, -1), Generation(self.anybody()), 0, -1)
        )

    def some_offset(self) -> int:
        return self.chance.choice((0, 1, 7, 2**40, -1))

    def some_places(self) -> list[tuple[str, int]]:
        places = self.chance.sample(PLACES, self.chance.randint(1, 3))
        return places + ([self.chance.choice(STRANGE_PLACES)] if self.slips(2) else [])
