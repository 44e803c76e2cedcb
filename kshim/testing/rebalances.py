"""Rebalances as values that a test can check."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kshim.recorder.shown import ShownPart, ShownRebalance

__all__ = ["Moved", "Rebalance", "Role", "rebalance_of"]


class Moved(NamedTuple):
    """A partition that moved to another member."""

    topic: str
    partition: int
    before: str | None
    """The previous owner's client id; None if the partition had no owner before."""
    after: str
    unowned_ms: int | None
    """How long the partition had no owner; None if that is not known."""


class Role(NamedTuple):
    """One member's part in a rebalance."""

    client_id: str
    member_id: str
    group_instance_id: str | None
    gone: str | None
    """Why it is no longer a member: "left", "removed", "expired", "ended", "evicted", "silent", "unrevoked",
    "replaced" or "refused"; None if it still is one.
    """
    joined_ms: int | None
    """How long after the rebalance began it joined; None if it did not."""
    paused_ms: int | None
    """How long it had no partitions to consume; None if it had some all the time."""


class Rebalance(NamedTuple):
    """One rebalance that is over."""

    group: str
    generation: int
    cause: str
    """The cause in words, such as "a member joined"; docs/why.md lists them all."""
    by: tuple[str, ...]
    """The client ids of the members that set it off."""
    reason: str
    """The reason that the client gave (KIP-800)."""
    detail: str
    """More about the cause, such as the topic that changed."""
    took_ms: int
    is_complete: bool
    """True if all members got their assignments before the next rebalance began."""
    members: tuple[Role, ...]
    moved: tuple[Moved, ...]
    story: tuple[str, ...]

    def __str__(self) -> str:
        return f"group {self.group}, generation {self.generation}: {' '.join(self.story)}"


def rebalance_of(value: ShownRebalance) -> Rebalance:
    """Return a rebalance from a server's JSON value."""
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


def _role(rebalance: ShownRebalance, member: ShownPart) -> Role:
    joined_ms = member["joined_ms"]
    return Role(
        member["client_id"],
        member["member_id"],
        member["instance_id"],
        member["gone"],
        None if joined_ms is None else joined_ms - rebalance["began_ms"],
        member["paused_ms"],
    )
