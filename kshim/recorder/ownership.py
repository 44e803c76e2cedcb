"""Follows the owners of a group's partitions through its rebalances: what moved, and how long it had no
owner.

An eager member gives all its partitions up before it joins. A cooperative member lists in its subscription
the partitions that it still owns; of these it later gives up those that its new assignment lacks (KIP-429).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kshim.coordination.groups.classic_group import CONSUMER
from kshim.coordination.groups.rebalance_record import NEVER_MS, Part, Rebalance, Who
from kshim.coordination.groups.trigger import Gone
from schemas.consumer_protocol import decode_assignment, decode_subscription, partitions_of
from schemas.message import MalformedMessage

Partition = tuple[str, int]
Partitions = frozenset[Partition]
NONE: Partitions = frozenset()


class Moved(NamedTuple):
    """A partition that moved to another member."""

    partition: Partition
    before: Who | None
    """The previous owner; None if none is known."""
    after: Who
    unowned_ms: int | None
    """How long the partition had no owner; None if that is not known."""


class Effect(NamedTuple):
    """The effect of one rebalance on partitions and members."""

    moved: tuple[Moved, ...]
    without_owner: tuple[Partition, ...]
    """Partitions that had an owner before the rebalance, and have none at its end."""
    paused_ms: Mapping[str, int]
    """How long each member had no partitions, and so could not consume, by member id."""


class Ownership:
    """The owners of one group's partitions. It must take each rebalance once, in order."""

    def __init__(self) -> None:
        self._owners: dict[Partition, Who] = {}
        self._released_ms: dict[Partition, int] = {}
        """When each partition without an owner lost it; `_owners` still has that last owner."""

    @property
    def partitions(self) -> int:
        """The number of partitions that have or had a known owner."""
        return len(self._owners)

    def take(self, rebalance: Rebalance) -> Effect:
        """Take the next rebalance, and return its effect. O(members and partitions)."""
        if rebalance.protocol_type not in (CONSUMER, ""):
            return Effect((), (), {})
        unowned = set(self._released_ms)
        keep = _kept if rebalance.is_of_consumers else _keeps
        keeps = {part.who.member_id: keep(part) for part in rebalance.parts.values()}
        for part in rebalance.parts.values():
            before = assigned(part.before)
            for partition in before:
                self._owners.setdefault(partition, part.who)
            released_ms = _released_ms(part)
            if released_ms is not None:
                for partition in before - keeps[part.who.member_id]:
                    self._released_ms.setdefault(partition, released_ms)
        moved = [move for part in rebalance.parts.values() for move in self._gains(part)]
        for part in rebalance.parts.values():
            self._gives_up(part, keeps[part.who.member_id])
        paused_ms = {
            member_id: _paused_ms(rebalance, part)
            for member_id, part in rebalance.parts.items()
            if part.gone is None and part.joined_ms != NEVER_MS and not keeps[member_id]
        }
        without_owner = tuple(sorted(self._released_ms.keys() - unowned))
        return Effect(tuple(sorted(moved)), without_owner, paused_ms)

    def _gains(self, part: Part) -> Iterable[Moved]:
        if part.assigned_ms == NEVER_MS:
            return
        for partition in assigned(part.after):
            before, released_ms = self._owners.get(partition), self._released_ms.pop(partition, None)
            self._owners[partition] = part.who
            if before is None or _key(before) != _key(part.who):
                unowned_ms = None if released_ms is None else max(part.assigned_ms - released_ms, 0)
                yield Moved(partition, before, part.who, unowned_ms)

    def _gives_up(self, part: Part, kept: Partitions) -> None:
        """Release the partitions that a cooperative member kept, but is not assigned any more."""
        if part.assigned_ms != NEVER_MS and part.gone is None:
            for partition in kept - assigned(part.after):
                owner = self._owners.get(partition)
                if owner is not None and _key(owner) == _key(part.who):
                    self._released_ms.setdefault(partition, part.assigned_ms)


def assigned(assignment: bytes) -> Partitions:
    """The partitions of an assignment of the consumer protocol; none if it cannot be decoded."""
    if not assignment:
        return NONE
    try:
        return partitions_of(decode_assignment(assignment).assigned_partitions)
    except MalformedMessage:
        return NONE


def _keeps(part: Part) -> Partitions:
    """The partitions that a member still owned when it joined, as its subscription says."""
    try:
        owned = decode_subscription(part.subscription).owned_partitions if part.subscription else ()
    except MalformedMessage:
        return NONE
    return partitions_of(owned)


def _kept(part: Part) -> Partitions:
    """The partitions that a member of a consumer group had before and after a rebalance: it had them all the
    time.
    """
    return assigned(part.before) & assigned(part.after)


def _released_ms(part: Part) -> int | None:
    """The time at which a member gave up the partitions that it did not keep.

    None if it gave up nothing, or a new member with its group.instance.id took its place.
    """
    if part.gone is Gone.REPLACED:
        return None
    if part.gone is not None:
        return part.gone_ms if part.heard_ms == NEVER_MS else part.heard_ms
    return None if part.joined_ms == NEVER_MS else part.joined_ms


def _paused_ms(rebalance: Rebalance, part: Part) -> int:
    until_ms = rebalance.ended_ms if part.assigned_ms == NEVER_MS else part.assigned_ms
    return max(until_ms - part.joined_ms, 0)


def _key(who: Who) -> str:
    """A key for the member, which stays the same when a static member comes back with a new member id."""
    return who.member_id if who.group_instance_id is None else f"static {who.group_instance_id}"
