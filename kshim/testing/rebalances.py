"""Rebalances as a test asserts on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["Moved", "Rebalance", "Role", "rebalance_of"]


class Moved(NamedTuple):
    """A partition that got another owner."""

    topic: str
    partition: int
    before: str | None
    """The client id of its owner before; None for the first."""
    after: str
    unowned_ms: int | None
    """How long nobody had it; None if that is not known."""


class Role(NamedTuple):
    """One member's part in a rebalance."""

    client_id: str
    member_id: str
    group_instance_id: str | None
    gone: str | None
    """None if it is still a member; "left", "removed", "expired", "evicted", "silent", "replaced",
    "refused".
    """
    joined_ms: int | None
    """How long after the beginning it joined."""
    paused_ms: int | None
    """How long it could not consume; None if it had partitions all the time."""


class Rebalance(NamedTuple):
    """One rebalance that is over."""

    group: str
    generation: int
    cause: str
    """In words: "a member joined"; docs/why.md has them all."""
    by: tuple[str, ...]
    """The client ids of those who set it off."""
    reason: str
    """What the client said (KIP-800)."""
    detail: str
    """What else is known of the cause, such as the topic that changed."""
    took_ms: int
    is_complete: bool
    """Whether all members got their assignments before the next one began."""
    members: tuple[Role, ...]
    moved: tuple[Moved, ...]
    story: tuple[str, ...]

    def __str__(self) -> str:
        return f"group {self.group}, generation {self.generation}: {' '.join(self.story)}"


def rebalance_of(value: Mapping[str, Any]) -> Rebalance:
    """A rebalance from the JSON value that a server gives."""
    client_ids = {each["member_id"]: each["client_id"] for each in value["members"]}
    moved = (
        Moved(
            each["topic"],
            each["partition"],
            None if each["from"] is None else client_ids.get(each["from"], each["from"]),
            client_ids.get(each["to"], each["to"]),
            each["unowned_ms"],
        )
        for each in value["moved"]
    )
    return Rebalance(
        group=value["group"],
        generation=value["generation"],
        cause=value["cause"],
        by=tuple(client_ids.get(each, each) for each in value["members_at_cause"]),
        reason=value["reason"],
        detail=value["detail"],
        took_ms=value["ended_ms"] - value["began_ms"],
        is_complete=value["completed_ms"] is not None,
        members=tuple(_role(value, each) for each in value["members"]),
        moved=tuple(moved),
        story=tuple(value["story"]),
    )


def _role(rebalance: Mapping[str, Any], member: Mapping[str, Any]) -> Role:
    joined_ms = member["joined_ms"]
    return Role(
        member["client_id"],
        member["member_id"],
        member["instance_id"],
        member["gone"],
        None if joined_ms is None else joined_ms - rebalance["began_ms"],
        member["paused_ms"],
    )
