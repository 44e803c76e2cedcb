"""Rebalances as values that a test can check."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from kshim.testing.brokers import Again

if TYPE_CHECKING:
    from kshim.recorder.shown import ShownPart, ShownRebalance

__all__ = ["Moved", "Rebalance", "Role", "check_cause", "latest", "rebalance_of"]


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
    contact: str | None = None
    """Its connection when it was gone: "open", "closed" (by the client, or because its process was killed),
    "lost" (its host does not answer) or "ended" (by the server); None if that is not known.
    """


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
    advice: str = ""
    """What to change, so that it does not happen again, or costs less."""

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
        advice=value["advice"],
    )


def check_cause(cause: str) -> None:
    """Raise ValueError if no rebalance can have this cause."""
    from kshim.coordination.groups.trigger import Trigger

    known = list(map(str, Trigger))
    if cause not in known:
        near = get_close_matches(cause, known, 3, 0.4) or known
        raise ValueError(f"no rebalance has the cause {cause!r}; write one of: {'; '.join(near)}")


def latest(found: Sequence[Rebalance], cause: str | None, after: int) -> Rebalance:
    """The last rebalance with this cause, or with any, and a generation above `after`. Raises Again."""
    for rebalance in reversed(found):
        if rebalance.generation > after and cause in (None, rebalance.cause):
            return rebalance
    had = "; ".join(f"generation {each.generation} because {each.cause}" for each in found)
    raise Again(f"it has had: {had}" if had else "it has had no rebalance that is over")


def _role(rebalance: ShownRebalance, member: ShownPart) -> Role:
    joined_ms = member["joined_ms"]
    return Role(
        member["client_id"],
        member["member_id"],
        member["instance_id"],
        member["gone"],
        None if joined_ms is None else joined_ms - rebalance["began_ms"],
        member["paused_ms"],
        member["contact"],
    )
