"""What a group waits for, told to people: who has not joined or synced yet, and why it rebalances.

DescribeGroups names the members of a group, but not which of them keep the others waiting.
"""

from __future__ import annotations

from typing import TypedDict

from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.states import State

__all__ = ["WaitsFor", "waits_for"]


class WaitsFor(TypedDict):
    """A group at one moment; the lists are of member ids."""

    state: str
    because: str
    """What set off the rebalance under way; empty if none is."""
    to_join: list[str]
    """Members that have not sent JoinGroup in this rebalance."""
    to_join_first: list[str]
    """Ids that new members were given, and have not come back with yet."""
    to_sync: list[str]
    """Members that have not sent SyncGroup in this generation."""


def waits_for(group: ClassicGroup) -> WaitsFor:
    """O(members)."""
    preparing = group.state is State.PREPARING_REBALANCE
    report = group.rebalance
    reason = f" ({report.reason})" if report is not None and report.reason else ""
    return WaitsFor(
        state=group.state,
        because="" if report is None else f"{report.trigger}: {report.member_id}{reason}",
        to_join=sorted(m.member_id for m in group.members.values() if preparing and m.parked_join is None),
        to_join_first=sorted(group.pending_join),
        to_sync=sorted(group.pending_sync),
    )
