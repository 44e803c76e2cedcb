"""The state of a run at one moment: what its processes have reported, and the server's view of the group."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, NotRequired, TypedDict

if TYPE_CHECKING:
    from kshim.testing.rebalances import Rebalance

TOPIC = "demo"
GROUP = "demo-group"
PARTITIONS = 6
SPARK = "spark"

Partitions = tuple[int, ...]


class Event(TypedDict):
    """An event of a worker, by the name of the worker and what happened."""

    name: str
    event: str
    at_ms: int
    generation: NotRequired[int]
    partitions: NotRequired[Sequence[int]]
    records: NotRequired[Sequence[tuple[int, int, str]]]
    offsets: NotRequired[Sequence[tuple[int, int]]]
    count: NotRequired[int]
    values: NotRequired[int]
    error: NotRequired[str]
    status: NotRequired[int | None]
    said: NotRequired[str]


def now_ms() -> int:
    """The machine's monotonic clock in milliseconds, the same for all its processes."""
    return time.monotonic_ns() // 1_000_000


class Look(NamedTuple):
    """The server's answers to questions about the group."""

    asked_ms: int
    state: str
    members: Mapping[str, Partitions]
    """Each member's partitions, by client id."""
    committed: Mapping[int, int]
    """The committed offset by partition."""
    ends: Mapping[int, int]
    """The log end offset by partition."""

    def lag(self, partitions: Iterable[int] | None = None) -> int:
        """Records not yet committed, in these partitions or in all."""
        counted = self.ends if partitions is None else partitions
        return sum(max(0, self.ends[p] - self.committed.get(p, 0)) for p in counted if p in self.ends)


@dataclass(slots=True)
class Step:
    """A step of the story."""

    title: str
    began_ms: int
    done_ms: int | None = None
    generation: int | None = None
    """The group's generation when the step was done."""


@dataclass(slots=True)
class Worker:
    """A client, as its events describe it."""

    state: str = "joining"
    """One of joining, consuming, rebalancing, leaving, killed and left."""
    generation: int | None = None
    partitions: Partitions = ()
    records: int = 0
    """Records acknowledged to a producer, or received by a consumer; those that came twice count twice."""
    answered_ms: int = 0
    """When the server last acknowledged a producer's records, or confirmed a consumer's commit."""

    @property
    def lives(self) -> bool:
        """True if the process was neither killed nor has ended."""
        return self.state not in ("killed", "left")


@dataclass(slots=True)
class Scene:
    """The server, its clients, and all looks at the group. Events change it through `apply`."""

    began_ms: int
    at_ms: int = 0
    server: str = "starting"
    """One of starting, ready and killed."""
    address: str = ""
    steps: list[Step] = field(default_factory=list)
    """The steps that have begun."""
    workers: dict[str, Worker] = field(default_factory=dict)
    looks: list[Look] = field(default_factory=list)
    rebalances: list[Rebalance] = field(default_factory=list)
    """The server's account of all rebalances."""
    failure: str | None = None
    """Why the run cannot go on; None while it can."""
    history: list[Event] = field(default_factory=list)
    """All events."""

    def named(self, kind: str) -> dict[str, Worker]:
        """The workers of a kind: "consumer", "producer"."""
        return {name: worker for name, worker in self.workers.items() if name.startswith(kind)}

    def living(self, kind: str) -> dict[str, Worker]:
        """The workers of a kind that were neither killed nor have ended."""
        return {name: worker for name, worker in self.named(kind).items() if worker.lives}

    def records(self, kind: str) -> int:
        """Records acknowledged to all producers, or received by all consumers."""
        return sum(worker.records for worker in self.named(kind).values())

    @property
    def generation(self) -> int | None:
        """The newest generation that any member has reported."""
        return max((w.generation for w in self.workers.values() if w.generation is not None), default=None)

    def held_by(self, name: str) -> Partitions:
        """A member's partitions: its own report while it lives, else the server's, which may lag behind."""
        if self.workers[name].lives:
            return self.workers[name].partitions
        return self.looks[-1].members.get(name, ()) if self.looks else ()

    # ---- the ends of steps

    @property
    def _fresh(self) -> Look | None:
        """The last look, if the server was asked after the present step had begun."""
        look = self.looks[-1] if self.looks else None
        return look if look and look.asked_ms >= self.steps[-1].began_ms else None

    def is_answered(self, kind: str, since_ms: int) -> bool:
        """True if the server has answered every living producer's records, or consumer's commits, since."""
        return all(worker.answered_ms > since_ms for worker in self.living(kind).values())

    def is_shared(self) -> bool:
        """True if the living members are in one generation, own all partitions and read; and the server
        describes them in the same way.
        """
        living = self.living("consumer")
        owned = sorted(p for member in living.values() for p in member.partitions)
        described = {name: member.partitions for name, member in living.items()}
        return (
            owned == list(range(PARTITIONS))
            and len({member.generation for member in living.values()}) == 1
            and all(member.records for member in living.values())
            and self._fresh is not None
            and self._fresh.state == "Stable"
            and self._fresh.members == described
        )

    def is_read(self) -> bool:
        """True if the producers have ended, and the group has since committed all that they sent."""
        ended_ms = max(producer.answered_ms for producer in self.named("producer").values())
        look = None if self.living("producer") else self._fresh
        return look is not None and look.asked_ms >= ended_ms and not look.lag()

    def is_left(self) -> bool:
        """True if every member has ended, and the server says that the group is empty."""
        return not self.living("consumer") and self._fresh is not None and self._fresh.state == "Empty"

    # ---- events

    def apply(self, event: Event) -> None:
        """Take in an event of a worker."""
        self.history.append(event)
        worker = self.workers.setdefault(event["name"], Worker())
        match event["event"]:
            case "assigned" if worker.lives:
                worker.state = "consuming"
                worker.generation, worker.partitions = event["generation"], tuple(event["partitions"])
            case "revoked":
                worker.partitions = ()
                worker.state = "rebalancing" if worker.state == "consuming" else worker.state
            case "received":
                worker.records += len(event["records"])
            case "acknowledged":
                worker.records += len(event["records"])
                worker.answered_ms = event["at_ms"]
            case "committed":
                worker.answered_ms = event["at_ms"]
            case "killed" | "leaving" as state:
                worker.state = state
            case "ended":
                self._end(event, worker)
            case "failed":
                self.failure = self.failure or f"{event['name']} failed: {event['error']}"

    def _end(self, event: Event, worker: Worker) -> None:
        """Note that a process has ended. Unless it was asked to, the run must end."""
        finished = event["name"] == SPARK and event["status"] == 0
        if worker.state not in ("killed", "leaving") and not finished:
            ended = f"{event['name']} ended by itself with status {event['status']}: {event['said']}"
            self.failure = self.failure or ended
        if worker.state != "killed":
            worker.state = "left"
