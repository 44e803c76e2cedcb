"""What is known of one rebalance: its cause, what each member did and when. Soft state, kept for people.

Apache Kafka logs a reason when a rebalance starts and forgets it. Here a group writes a record while it
rebalances, and reports it when the rebalance is over, so that "why did my group rebalance?" has one answer.
The record holds the bytes that clients sent, as they are; who reads it decodes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import getsizeof
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from kshim.coordination.groups.texts import joined
from kshim.coordination.groups.trigger import Gone, Trigger

if TYPE_CHECKING:
    from kshim.coordination.groups.member import Member

NEVER_MS = -1
"""Stands for the time of what has not happened."""
RECORD_BYTES, PART_BYTES, WHO_BYTES, VOTE_BYTES = 800, 400, 100, 100
"""What a record and each of its parts take in memory, about, without texts and bytes."""
MOST_REASON = 1_000
"""Characters of what a client says."""
MOST_SUBSCRIPTION_BYTES = 1_000_000
"""A larger one is not recorded: it can hardly be stored with its group (see `message.max.bytes`)."""
MOST_NAMED = 1_000
"""Of the members that have set off a rebalance."""
MOST_DEPARTED_BYTES = 1_000_000
"""Members may come and go without end while a join phase lasts."""


class Who(NamedTuple):
    """A member, as people know it."""

    member_id: str
    client_id: str = ""
    client_host: str = ""
    """As Java prints an address: "/127.0.0.1"."""
    group_instance_id: str | None = None

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        return WHO_BYTES + sum(map(getsizeof, self))


@dataclass(slots=True)
class Part:
    """One member's part in a rebalance. Times are the coordinator's, in ms; NEVER_MS if it did not happen."""

    who: Who
    before: bytes = b""
    """The assignment that it had been given last."""
    after: bytes = b""
    subscription: bytes = b""
    """What it joined with, for the protocol that was chosen."""
    offers: bytes = b""
    """The names of the protocols that it joined with, in its order of preference; see `Protocols`."""
    told_ms: int = NEVER_MS
    """When it was answered REBALANCE_IN_PROGRESS."""
    joined_ms: int = NEVER_MS
    synced_ms: int = NEVER_MS
    assigned_ms: int = NEVER_MS
    """When it was given its assignment."""
    gone: Gone | None = None
    gone_ms: int = NEVER_MS
    heard_ms: int = NEVER_MS
    """If its session has expired: when it was heard last."""

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        sent = (self.before, self.after, self.subscription, self.offers)
        return PART_BYTES + self.who.size + sum(map(getsizeof, sent))


class Departed:
    """Members that are gone, of which no rebalance tells yet. Of too many, the first are kept."""

    __slots__ = ("_bytes", "_parts")

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, part: Part) -> bool:
        """Return False if there is no room for it."""
        if self._bytes >= MOST_DEPARTED_BYTES:
            return False
        self._parts.append(part)
        self._bytes += part.size
        return True

    def take(self) -> list[Part]:
        """All of them, which are not kept any more."""
        parts, self._parts, self._bytes = self._parts, [], 0
        return parts


@dataclass(frozen=True, slots=True)
class RebalanceBegan:
    """A rebalance has begun; the record of it follows when it is over."""

    group_id: str
    trigger: Trigger
    members: tuple[Who, ...]
    kind: ClassVar = "rebalance began"
    is_minor: ClassVar = True
    """The log needs only the record."""

    def __str__(self) -> str:
        names = joined(each.member_id for each in self.members)
        return f"group {self.group_id}: rebalances because {self.trigger}{': ' if names else ''}{names}"


@dataclass(frozen=True, slots=True)
class Resumed:
    """A static member has come back, and goes on in its generation."""

    group_id: str
    before: str
    after: Who
    kind: ClassVar = "static member replaced"

    def __str__(self) -> str:
        return (
            f"group {self.group_id}: static member {self.after.group_instance_id} came back as "
            f"{self.after.member_id}, previously {self.before}; no rebalance was needed"
        )


@dataclass(slots=True)
class Rebalance:
    """One rebalance: in the making while it is its group's, and not changed after it was reported."""

    group_id: str
    trigger: Trigger
    members: tuple[Who, ...]
    """Who set it off; empty if nobody did."""
    reason: str
    """What the client said (KIP-800); empty if it said nothing."""
    detail: str
    """What else is known of the cause, such as the topic that changed."""
    began_ms: int
    joined_ms: int = NEVER_MS
    """When the join phase ended."""
    assigned_ms: int = NEVER_MS
    """When the leader's assignments were accepted."""
    ended_ms: int = NEVER_MS
    """When every member had its assignment, or the next rebalance began."""
    is_complete: bool = False
    """Whether every member got its assignment."""
    generation: int = 0
    """The one that it was to lead to."""
    protocol_type: str = ""
    protocol: str = ""
    """The assignor that was chosen."""
    leader: str = ""
    votes: Mapping[str, int] = field(default_factory=dict)
    """How many members voted for each protocol that all offer."""
    parts: dict[str, Part] = field(default_factory=dict)
    """By member id, those of members that are gone included."""
    kind: ClassVar = "rebalance"

    def part(self, member: Member) -> Part:
        """The part of `member`, which begins now if it had none."""
        found = self.parts.get(member.member_id)
        if found is None:
            found = self.parts[member.member_id] = Part(who(member), before=member.holds)
        return found

    def told(self, member_id: str, now_ms: int) -> None:
        """Note that a member heard that the group rebalances."""
        part = self.parts.get(member_id)
        if part is not None and part.told_ms == NEVER_MS:
            part.told_ms = now_ms

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
            f"group {self.group_id}: generation {self.generation} with {remaining} member(s) {after} "
            f"{self.ended_ms - self.began_ms} ms, because {cause}{said}{evicted}"
        )


def who(member: Member) -> Who:
    """`member` as people know it."""
    return Who(member.member_id, member.client_id, member.client_host, member.group_instance_id)
