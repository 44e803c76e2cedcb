"""The state of a run at one moment: one object, changed only by `apply(event)`."""

from dataclasses import dataclass, field

from kshim.demo.events import (
    Acknowledged,
    Assigned,
    Committed,
    Counted,
    Created,
    Event,
    Exited,
    Failed,
    GroupSeen,
    GroupUnseen,
    Joining,
    Killed,
    Partitions,
    Ready,
    Received,
    Revoked,
    Started,
    Stopping,
)

SERVER = "server"
WATCHER = "watcher"
SPARK = "spark"
GONE = ("killed", "left")


@dataclass(slots=True)
class Member:
    """A consumer, as its events describe it."""

    state: str = "starting"
    """One of starting, joining, consuming, rebalancing, leaving, killed and left."""
    generation: int | None = None
    partitions: Partitions = ()
    received: int = 0
    committed_ms: int | None = None

    @property
    def lives(self) -> bool:
        """True if the member was neither killed nor has left."""
        return self.state not in GONE


@dataclass(slots=True)
class Producer:
    """A producer, as its events describe it."""

    state: str = "starting"
    """One of starting, sending and done."""
    acknowledged: int = 0
    acknowledged_ms: int | None = None


@dataclass(slots=True)
class Scene:
    """The server, the members, the producers, and the last description of the group."""

    began_ms: int
    partitions: int
    at_ms: int = 0
    server: str = "starting"
    address: str = ""
    ready_ms: int | None = None
    has_topic: bool = False
    members: dict[str, Member] = field(default_factory=dict)
    producers: dict[str, Producer] = field(default_factory=dict)
    seen: GroupSeen | None = None
    reachable: bool = False
    counted: Counted | None = None
    most_lag: int = 0
    """The largest lag that any member has had, in records."""
    failure: str | None = None
    """Why the run cannot go on; None while it can."""
    asked: set[str] = field(default_factory=set)
    """The processes that the parent has killed or asked to stop."""
    exited: set[str] = field(default_factory=set)
    history: list[Event] = field(default_factory=list)

    @property
    def acknowledged(self) -> int:
        """Records acknowledged to the producers."""
        return sum(producer.acknowledged for producer in self.producers.values())

    @property
    def received(self) -> int:
        """Records received by the members; a record that came twice counts twice."""
        return sum(member.received for member in self.members.values())

    @property
    def living(self) -> dict[str, Member]:
        """The members that were neither killed nor have left."""
        return {name: member for name, member in self.members.items() if member.lives}

    @property
    def generation(self) -> int | None:
        """The newest generation that any member has reported."""
        return max((m.generation for m in self.members.values() if m.generation is not None), default=None)

    @property
    def ends(self) -> dict[int, int]:
        """Log end offset by partition, as last seen."""
        return dict(self.seen.ends) if self.seen else {}

    @property
    def lag(self) -> dict[int, int]:
        """Records not yet committed, by partition, as last seen."""
        committed = dict(self.seen.committed) if self.seen else {}
        return {partition: max(0, end - committed.get(partition, 0)) for partition, end in self.ends.items()}

    def held_by(self, name: str) -> Partitions:
        """A member's partitions: its own report while it lives, else the server's, which may lag behind."""
        if self.members[name].lives:
            return self.members[name].partitions
        return dict(self.seen.members).get(name, ()) if self.seen else ()

    def lag_of(self, name: str) -> int:
        """Records not yet committed in the partitions a member holds, a dead one included."""
        return sum(self.lag.get(partition, 0) for partition in self.held_by(name))

    def apply(self, event: Event) -> None:
        """Take in one event."""
        self.history.append(event)
        self.at_ms = max(self.at_ms, event.at_ms)
        if isinstance(event, Started):
            self._cast(event.name)
        if event.name == SERVER:
            self._apply_server(event)
        elif event.name in self.members:
            self._apply_member(event, self.members[event.name])
        elif event.name in self.producers:
            self._apply_producer(event, self.producers[event.name])
        else:
            self._apply_other(event)
        self._apply_any(event)

    def _cast(self, name: str) -> None:
        """Add a process to the scene. Its kind follows from its name."""
        if name.startswith("consumer"):
            self.members[name] = Member()
        elif name.startswith("producer"):
            self.producers[name] = Producer()

    def _apply_server(self, event: Event) -> None:
        match event:
            case Started():
                self.server = "starting"
            case Ready():
                self.server, self.address, self.ready_ms = "ready", event.address, event.at_ms
            case Killed():
                self.server, self.ready_ms, self.reachable = "killed", None, False

    def _apply_member(self, event: Event, member: Member) -> None:
        match event:
            case Joining():
                member.state = "joining"
            case Revoked():
                member.partitions = ()
                if member.state == "consuming":
                    member.state = "rebalancing"
            case Stopping():
                member.state = "leaving"
            case Assigned():
                member.state = "consuming"
                member.generation, member.partitions = event.generation, event.partitions
            case Received():
                member.received += len(event.records)
            case Committed():
                member.committed_ms = event.at_ms
            case Killed():
                member.state = "killed"
            case Exited() if member.lives:
                member.state = "left"

    def _apply_producer(self, event: Event, producer: Producer) -> None:
        match event:
            case Acknowledged():
                producer.state = "sending"
                producer.acknowledged += len(event.records)
                producer.acknowledged_ms = event.at_ms
            case Exited():
                producer.state = "done"

    def _apply_other(self, event: Event) -> None:
        match event:
            case Created():
                self.has_topic = True
            case GroupSeen():
                self.seen, self.reachable = event, True
                self.most_lag = max([self.most_lag, *map(self.lag_of, self.members)])
            case GroupUnseen():
                self.reachable = False
            case Counted():
                self.counted = event

    def _apply_any(self, event: Event) -> None:
        """Apply an event of any process. If a process fails or ends unasked, note why the run must end."""
        match event:
            case Exited():
                finished = event.name == SPARK and event.status == 0
                if event.name not in self.asked and not finished:
                    ended = f"{event.name} ended by itself with status {event.status}: {event.said}"
                    self.failure = self.failure or ended
                self.exited.add(event.name)
            case Failed():
                self.failure = self.failure or f"{event.name} failed: {event.error}"
            case Started():
                self.exited.discard(event.name)
                self.asked.discard(event.name)
            case Killed() | Stopping():
                self.asked.add(event.name)
