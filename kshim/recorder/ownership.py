"""Who owns a group's partitions, as its rebalances tell: what moved, and how long nobody had it.

An eager member gives all its partitions up before it joins. A cooperative one says in its subscription what
it still owns, and gives up the rest when its assignment lacks it (KIP-429).
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
    """A partition that got another owner."""

    partition: Partition
    before: Who | None
    """None if nobody is known to have had it."""
    after: Who
    unowned_ms: int | None
    """How long nobody had it; None if that is not known."""


class Effect(NamedTuple):
    """What a rebalance meant for partitions and members."""

    moved: tuple[Moved, ...]
    without_owner: tuple[Partition, ...]
    """Partitions that somebody had before it, and nobody has at its end."""
    paused_ms: Mapping[str, int]
    """How long each member could not consume, by member id: it had no partitions meanwhile."""


class Ownership:
    """Follows one group through its rebalances; each is taken once, in their order."""

    def __init__(self) -> None:
        self._owners: dict[Partition, Who] = {}
        self._released_ms: dict[Partition, int] = {}
        """Since when partitions have no owner; `_owners` has their last one."""

    @property
    def partitions(self) -> int:
        """How many partitions it knows an owner of."""
        return len(self._owners)

    def take(self, rebalance: Rebalance) -> Effect:
        """The effect of the next rebalance. O(members and partitions)."""
        if rebalance.protocol_type not in (CONSUMER, ""):
            return Effect((), (), {})
        unowned = set(self._released_ms)
        keeps = {part.who.member_id: _keeps(part) for part in rebalance.parts.values()}
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
        """A cooperative member gives up what it kept and is not assigned any more."""
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
    """What a member still owned when it joined."""
    try:
        owned = decode_subscription(part.subscription).owned_partitions if part.subscription else ()
    except MalformedMessage:
        return NONE
    return partitions_of(owned)


def _released_ms(part: Part) -> int | None:
    """When a member gave up what it did not keep; None if it did not, or went on as a successor."""
    if part.gone is Gone.REPLACED:
        return None
    if part.gone is not None:
        return part.gone_ms if part.heard_ms == NEVER_MS else part.heard_ms
    return None if part.joined_ms == NEVER_MS else part.joined_ms


def _paused_ms(rebalance: Rebalance, part: Part) -> int:
    until_ms = rebalance.ended_ms if part.assigned_ms == NEVER_MS else part.assigned_ms
    return max(until_ms - part.joined_ms, 0)


def _key(who: Who) -> str:
    """What stays the same when a static member comes back."""
    return who.member_id if who.group_instance_id is None else f"static {who.group_instance_id}"
