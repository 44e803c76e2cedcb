"""Reports about consumer groups for people: a member is refused, a group changes its protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kshim.coordination.groups.rebalance_record import Who
from schemas.error_code import ErrorCode

AGAIN_MS = 60_000
"""A refusal that repeats is reported again after this time."""
MOST_REFUSALS = 100
"""Most refusals of one shard that are remembered. The first of them is forgotten for the next."""


@dataclass(frozen=True, slots=True)
class MemberRefused:
    """A heartbeat or a JoinGroup is refused; the member is fenced, or cannot join."""

    group_id: str
    who: Who
    error: ErrorCode
    message: str
    """Kafka's message; empty if it has none."""
    holder: Who | None = None
    """The member that has the instance id for which this one is refused."""
    kind: ClassVar = "member refused"

    def __str__(self) -> str:
        why = f"{self.error.name}: {self.message}" if self.message else self.error.name
        holder = ""
        if self.holder is not None:
            who = named(self.holder)
            holder = (
                f" That is {who}. Give each program a group.instance.id of its own, or end the other one."
            )
        return f"group {self.group_id}: refused {named(self.who)}: {why}{holder}"


@dataclass(frozen=True, slots=True)
class GroupConverted:
    """A group with members has become one of the other protocol."""

    group_id: str
    is_of_consumers: bool
    generation: int
    members: int
    """The number of members that it has kept."""
    by: Who | None = None
    """The member that joined and so converted it."""
    kind: ClassVar = "group converted"

    def __str__(self) -> str:
        group, count = self.group_id, f"{self.members} member{'' if self.members == 1 else 's'}"
        if not self.is_of_consumers:
            return (
                f"group {group}: is a classic group again, after epoch {self.generation}: no member with "
                f"group.protocol=consumer is left; it keeps {count} of the classic protocol"
            )
        by = "a member" if self.by is None else named(self.by)
        return (
            f"group {group}: is a consumer group now, after generation {self.generation}: {by} has joined "
            f"with group.protocol=consumer; it keeps {count} of the classic protocol"
        )


class Refusals:
    """The refusals that were reported lately: a client that is refused tries again and again."""

    __slots__ = ("_reported_ms",)

    def __init__(self) -> None:
        self._reported_ms: dict[tuple[str, str, ErrorCode], int] = {}

    def is_new(self, group_id: str, member: str, error: ErrorCode, now_ms: int) -> bool:
        """True if the same was not reported within AGAIN_MS."""
        key, known = (group_id, member, error), self._reported_ms
        if now_ms - known.get(key, -AGAIN_MS) < AGAIN_MS:
            return False
        known.pop(key, None)
        known[key] = now_ms
        if len(known) > MOST_REFUSALS:
            del known[next(iter(known))]
        return True


def named(who: Who) -> str:
    """A member by the names that people know."""
    name = who.group_instance_id or who.client_id or who.member_id
    host = who.client_host.removeprefix("/")
    client = "client" if who.client_id in ("", name) else f"client {who.client_id}"
    return f"{name} (member {who.member_id or 'without an id'}, {client} at {host or 'an unknown address'})"
