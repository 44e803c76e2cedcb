"""A group as people are shown it: its members and its committed offsets, at one moment.

DescribeGroups contains neither the generation nor the offsets, and only the group's coordinator answers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.offsets import Committed
from kshim.coordination.groups.pending_offsets import Partition
from kshim.coordination.groups.rebalance_record import Named


class SeenMember(Named, Protocol):
    """A member of either kind of group."""

    @property
    def session_timeout_ms(self) -> int: ...
    @property
    def rebalance_timeout_ms(self) -> int: ...
    @property
    def assignment(self) -> bytes:
        """What it has, as SyncGroup assigned it, or would have assigned it."""


class SeenGroup(NamedTuple):
    """One group. Read it at once: it refers to objects that change."""

    group_id: str
    node_id: int
    """The broker that coordinates it."""
    state: StrEnum
    """A `State`, or a `GroupState` of a consumer group."""
    generation: int
    """Of a consumer group it is the group epoch."""
    protocol_type: str
    protocol: str
    """The assignor."""
    leader: str
    """Empty for a consumer group: the coordinator assigns."""
    members: Sequence[SeenMember]
    committed: Committed
    """The committed offsets; each is decoded anew whenever it is read."""
    assignment_epoch: int | None = None
    """The epoch of a consumer group's target; None for a classic group."""

    @property
    def partitions(self) -> Iterable[Partition]:
        """The partitions for which the group has committed an offset."""
        return self.committed.keys()


def see(group: ClassicGroup, node_id: int, committed: Committed) -> SeenGroup:
    """Show `group` as it is now. O(members)."""
    return SeenGroup(
        group_id=group.group_id,
        node_id=node_id,
        state=group.state,
        generation=group.generation,
        protocol_type=group.protocol_type or "",
        protocol=group.protocol_name or "",
        leader=group.leader or "",
        members=tuple(group.members.values()),
        committed=committed,
    )
