"""The present state of a group for people: which members have not joined or synced yet, how long the group
waits for them, and why it rebalances.

DescribeGroups names the members of a group, but does not say which of them keep the others waiting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.rebalance_record import Rebalance, Who, who
from kshim.coordination.groups.states import State
from kshim.coordination.groups.texts import joined
from kshim.coordination.groups.timers import TimerKey, TimerKind, Timers

__all__ = ["WaitsFor", "waits_for"]


class Revoking(TypedDict):
    """A member that was asked to give up partitions, and has not said that it did."""

    member_id: str
    partitions: Mapping[str, list[int]]
    """Partition indexes by topic."""
    since_ms: int
    """When it was asked; after a restart, when its group was loaded."""
    until_ms: int
    """When it is removed if it does not."""


class WaitsFor(TypedDict):
    """A group at one moment; the lists are of member ids."""

    state: str
    generation: int
    protocol_type: str
    protocol: str
    leader: str
    members: list[Who]
    because: str
    """The cause of the rebalance under way; empty if there is none."""
    began_ms: int | None
    """When that rebalance began."""
    until_ms: int | None
    """When the group gives up the members that it waits for."""
    to_join: list[str]
    """Members that have not sent JoinGroup in this rebalance."""
    to_join_first: list[str]
    """Ids that were handed out to new members and have not come back yet."""
    to_sync: list[str]
    """Members that have not sent SyncGroup in this generation."""
    assignment_epoch: NotRequired[int]
    """The epoch of the target. Only consumer groups have this field and those below."""
    to_revoke: NotRequired[list[str]]
    """Members that were asked to give up partitions, and have not said that they did."""
    revoking: NotRequired[list[Revoking]]
    """More about these, the one that is removed first in front."""
    to_get: NotRequired[list[str]]
    """Members that are to get partitions that others have not given up."""
    to_hear: NotRequired[list[str]]
    """Members that have not been answered since the target was computed."""


def waits_for(group: ClassicGroup, timers: Timers) -> WaitsFor:
    """Describe what `group` waits for now. O(members)."""
    preparing = group.state is State.PREPARING_REBALANCE
    return WaitsFor(
        state=group.state,
        generation=group.generation,
        protocol_type=group.protocol_type or "",
        protocol=group.protocol_name or "",
        leader=group.leader or "",
        members=[who(member) for member in group.members.values()],
        because=because(group.rebalance),
        began_ms=None if group.rebalance is None else group.rebalance.began_ms,
        until_ms=timers.deadline_ms(
            TimerKey(TimerKind.JOIN if preparing else TimerKind.SYNC, group.group_id)
        ),
        to_join=sorted(m.member_id for m in group.members.values() if preparing and m.parked_join is None),
        to_join_first=sorted(group.pending_join),
        to_sync=sorted(group.pending_sync),
    )


def because(rebalance: Rebalance | None) -> str:
    """The cause of the rebalance under way; empty if there is none."""
    if rebalance is None:
        return ""
    names = joined(each.member_id for each in rebalance.members)
    cause = f"{rebalance.trigger}: {names}" if names else str(rebalance.trigger)
    return f"{cause} ({rebalance.reason})" if rebalance.reason else cause
