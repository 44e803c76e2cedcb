"""The record of one rebalance: its cause, and what each member did and when. Soft state, kept for people.

Apache Kafka logs a reason when a rebalance starts, and forgets it. In kshim a group keeps a record while it
rebalances, and reports it when the rebalance is over, so that "why did my group rebalance?" has one answer.
The record holds the bytes that clients sent, as they are; its readers decode them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import getsizeof
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from kshim.coordination.groups.texts import joined
from kshim.coordination.groups.trigger import Gone, LastContact, Trigger

if TYPE_CHECKING:
    from kshim.coordination.groups.member import Member

NEVER_MS = -1
"""Stands for the time of an event that has not happened."""
RECORD_BYTES, PART_BYTES, WHO_BYTES, VOTE_BYTES = 800, 400, 100, 100
"""About how many bytes of memory a record and each of its parts take, without their texts and `bytes`."""
MOST_REASON = 1_000
"""How many characters of a reason or a detail are kept."""
MOST_SUBSCRIPTION_BYTES = 1_000_000
"""Larger subscriptions are not recorded; they can hardly be stored with their group (see
`message.max.bytes`).
"""
MOST_NAMED = 1_000
"""How many of the members that set off a rebalance are kept."""
MOST_DEPARTED_BYTES = 1_000_000
"""How many bytes `Departed` may take: members may come and go without end while a join phase lasts."""


class Named(Protocol):
    """A member, as far as people know it by names."""

    @property
    def member_id(self) -> str: ...
    @property
    def client_id(self) -> str: ...
    @property
    def client_host(self) -> str: ...
    @property
    def group_instance_id(self) -> str | None: ...


class Who(NamedTuple):
    """The names by which people know a member."""

    member_id: str
    client_id: str = ""
    client_host: str = ""
    """The client's address in Java's form: "/127.0.0.1"."""
    group_instance_id: str | None = None

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        return WHO_BYTES + sum(map(getsizeof, self))


@dataclass(slots=True)
class Departure:
    """How a member ceased to be one, and what its connection was like then."""

    gone: Gone | None = None
    gone_ms: int = NEVER_MS
    contact: LastContact | None = None
    """None if the connection is not known."""


@dataclass(slots=True)
class Part:
    """One member's part in a rebalance. Times are the coordinator's; NEVER_MS: the event has not happened."""

    who: Who
    before: bytes = b""
    """The last assignment that it had received before."""
    after: bytes = b""
    subscription: bytes = b""
    """The metadata that it joined with, for the protocol that was chosen."""
    offers: bytes = b""
    """The names of the protocols that it joined with, in its order of preference; see `Protocols`."""
    notified_ms: int = NEVER_MS
    """When it was answered REBALANCE_IN_PROGRESS. In a consumer group: when it heard what it is to have, or
    to give up.
    """
    is_released: bool = False
    """True if it heard that by the answer to a heartbeat that had waited; only in consumer groups."""
    joined_ms: int = NEVER_MS
    synced_ms: int = NEVER_MS
    assigned_ms: int = NEVER_MS
    """When its assignment was sent to it."""
    gone: Gone | None = None
    gone_ms: int = NEVER_MS
    heard_ms: int = NEVER_MS
    """When its last request restarted its session; only if that session has expired."""
    departure: Departure | None = None
    """The last news of the connection of a member that is gone. It may change for some seconds after the
    rebalance is reported: only then does a connection that stays open mean something.
    """

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        sent = (self.before, self.after, self.subscription, self.offers)
        return PART_BYTES + self.who.size + sum(map(getsizeof, sent))


class Departed:
    """Members that are gone and that no record mentions yet. If there are too many, the first are kept."""

    __slots__ = ("_bytes", "_parts")

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, part: Part) -> bool:
        """Add one member's part; return False, and drop it, if there is no room."""
        if self._bytes >= MOST_DEPARTED_BYTES:
            return False
        self._parts.append(part)
        self._bytes += part.size
        return True

    def take(self) -> list[Part]:
        """Return all parts, and keep none."""
        parts, self._parts, self._bytes = self._parts, [], 0
        return parts


@dataclass(frozen=True, slots=True)
class RebalanceBegan:
    """A report: a rebalance has begun. Its record follows when it is over."""

    group_id: str
    trigger: Trigger
    members: tuple[Who, ...]
    kind: ClassVar = "rebalance began"
    is_minor: ClassVar = True
    """True: this is logged at DEBUG only, as the record has it all."""

    def __str__(self) -> str:
        names = joined(each.member_id for each in self.members)
        return f"group {self.group_id}: rebalances because {self.trigger}{': ' if names else ''}{names}"


@dataclass(frozen=True, slots=True)
class Resumed:
    """A report: a static member has come back, and goes on in its generation."""

    group_id: str
    before: str
    after: Who
    kind: ClassVar = "static member replaced"

    def __str__(self) -> str:
        return (
            f"group {self.group_id}: static member {self.after.group_instance_id} came back as "
            f"{self.after.member_id}, previously {self.before}; no rebalance was needed"
        )


@dataclass(frozen=True, slots=True)
class TwoHolders:
    """A report: a static member was replaced, and its client lives: two have one group.instance.id."""

    group_id: str
    before: Who
    after: Who
    kind: ClassVar = "two holders"

    def __str__(self) -> str:
        return (
            f"group {self.group_id}: two live members use group.instance.id {self.after.group_instance_id}: "
            f"{self.after.member_id} ({_client(self.after)}) took the place of {self.before.member_id} "
            f"({_client(self.before)}), which is fenced; give each program a group.instance.id of its own"
        )


@dataclass(slots=True)
class Rebalance:
    """One rebalance. It changes while its group rebalances, and no more once it is reported."""

    group_id: str
    trigger: Trigger
    members: tuple[Who, ...]
    """The members that set it off; empty if none did."""
    reason: str
    """The reason that the client gave (KIP-800), if it gave one."""
    detail: str
    """More about the cause, such as the topic that changed."""
    began_ms: int
    joined_ms: int = NEVER_MS
    """When the join phase ended."""
    delay_ms: int = 0
    """group.initial.rebalance.delay.ms, if the join phase waits for it."""
    assigned_ms: int = NEVER_MS
    """When the leader's assignments were accepted."""
    ended_ms: int = NEVER_MS
    """When every member had its assignment, or the next rebalance began, or the shard was given up."""
    is_complete: bool = False
    """True if every member got its assignment."""
    generation: int = 0
    """The generation that the rebalance leads to."""
    protocol_type: str = ""
    protocol: str = ""
    """The assignor that was chosen."""
    leader: str = ""
    votes: Mapping[str, int] = field(default_factory=dict)
    """The number of votes by protocol; see `ClassicGroup.votes`."""
    parts: dict[str, Part] = field(default_factory=dict)
    """The members' parts by member id; members that are gone are included."""
    is_of_consumers: bool = False
    """True for a group of the consumer protocol: then the generation is the group epoch, and members do not
    join and sync. `notified_ms` is when a member was asked to give up partitions, or got others; `joined_ms`
    is when it had given them up, if it had to.
    """
    came_back: Departure | None = None
    """How the same client ceased to be a member before, if a member that joined set the rebalance off."""
    kind: ClassVar = "rebalance"

    def part(self, member: Member) -> Part:
        """The part of `member`; it is created if there is none yet."""
        found = self.parts.get(member.member_id)
        if found is None:
            found = self.parts[member.member_id] = Part(who(member), before=member.holds)
        return found

    def notified(self, member_id: str, now_ms: int) -> None:
        """Note that a member was answered REBALANCE_IN_PROGRESS; the first time counts."""
        part = self.parts.get(member_id)
        if part is not None and part.notified_ms == NEVER_MS:
            part.notified_ms = now_ms

    @property
    def unit(self) -> str:
        """What `generation` counts."""
        return "epoch" if self.is_of_consumers else "generation"

    @property
    def evicted(self) -> tuple[str, ...]:
        """The ids of the members that did not join in time."""
        return tuple(member_id for member_id, part in self.parts.items() if part.gone is Gone.EVICTED)

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        named = (self.group_id, self.reason, self.detail, self.protocol_type, self.protocol, self.leader)
        votes = sum(VOTE_BYTES + getsizeof(name) for name in self.votes)
        parts = sum(part.size for part in self.parts.values())
        return RECORD_BYTES + sum(map(getsizeof, named)) + sum(m.size for m in self.members) + votes + parts

    def __str__(self) -> str:
        remaining = sum(part.gone is None for part in self.parts.values())
        names = joined(each.member_id for each in self.members)
        cause = f"{self.trigger}: {names}" if names else str(self.trigger)
        said = "".join(f" ({text})" for text in (self.reason, self.detail) if text)
        evicted = f"; evicted {joined(self.evicted)}" if self.evicted else ""
        after = "after" if self.is_complete else "gave way to the next rebalance after"
        return (
            f"group {self.group_id}: {self.unit} {self.generation} with {remaining} member(s) {after} "
            f"{self.ended_ms - self.began_ms} ms, because {cause}{said}{evicted}"
        )


def who(member: Named) -> Who:
    """The names by which people know `member`."""
    return Who(member.member_id, member.client_id, member.client_host, member.group_instance_id)


def _client(who: Who) -> str:
    return f"client {who.client_id} at {who.client_host.removeprefix('/') or 'an unknown address'}"
