"""A generation that passes at once, and whose SyncGroups may wait for the next one.

In a cooperative rebalance (KIP-429) a member may be assigned less than it owns. It gives up the rest and
joins again at once, so that another member can have it. The others would learn of that with their next
heartbeat, up to 3 s later. So the SyncGroup of a member to which this generation gives nothing new stays
parked for a moment: if somebody joins again meanwhile, it is answered REBALANCE_IN_PROGRESS, like one that
arrives then.
"""

from __future__ import annotations

from kshim.coordination.groups.classic_group import CONSUMER, ClassicGroup
from kshim.coordination.groups.member import Member
from schemas.consumer_protocol import decode_assignment, decode_subscription, partitions_of
from schemas.message import MalformedMessage

HOLD_MS = 300
"""A client that gives up partitions joins again within some 50 ms, unless its application takes long."""

Partitions = frozenset[tuple[str, int]]


def who_may_wait(group: ClassicGroup) -> frozenset[str]:
    """The ids of the members that lose nothing by waiting for the next generation; none if this one may last.

    O(members and their partitions). Eager members own nothing while they join, so none of them waits.
    """
    if group.protocol_type != CONSUMER:
        return frozenset()
    try:
        owned = {member.member_id: _owned(group, member) for member in group.members.values()}
        if not any(owned.values()):
            return frozenset()
        assigned = {member.member_id: _assigned(member) for member in group.members.values()}
    except MalformedMessage:
        return frozenset()
    if all(owned[member_id] <= assigned[member_id] for member_id in owned):
        return frozenset()
    return frozenset(member_id for member_id in owned if owned[member_id] == assigned[member_id])


def _owned(group: ClassicGroup, member: Member) -> Partitions:
    return partitions_of(decode_subscription(member.metadata(group.protocol_name)).owned_partitions)


def _assigned(member: Member) -> Partitions:
    """Empty as well for a member that its leader has left out."""
    return (
        partitions_of(decode_assignment(member.assignment).assigned_partitions)
        if member.assignment
        else frozenset()
    )
