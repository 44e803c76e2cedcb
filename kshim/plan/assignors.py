"""How the leader of a classic group shares the partitions of one topic, as clients do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

Shares = Mapping[str, Sequence[int]]
"""Partitions by member."""


def range_shares(owned: Shares, partitions: int) -> Shares:
    """Blocks of neighbours, the first members get one more."""
    few, more = divmod(partitions, len(owned))
    shares: dict[str, Sequence[int]] = {}
    begin = 0
    for number, member in enumerate(sorted(owned)):
        end = begin + few + (number < more)
        shares[member] = range(begin, end)
        begin = end
    return shares


def roundrobin_shares(owned: Shares, partitions: int) -> Shares:
    """In turns."""
    members = sorted(owned)
    return {member: range(number, partitions, len(members)) for number, member in enumerate(members)}


def cooperative_shares(owned: Shares, partitions: int) -> Shares:
    """Members keep what they have, up to an equal share. What moves is given to nobody at first: its owner
    has to give it up, and joins again (KIP-429).
    """
    shares = _sticky(owned, partitions)
    owner = {partition: member for member, those in owned.items() for partition in those}
    return {
        member: [partition for partition in those if owner.get(partition, member) == member]
        for member, those in shares.items()
    }


def _sticky(owned: Shares, partitions: int) -> dict[str, list[int]]:
    few, more = divmod(partitions, len(owned))
    shares: dict[str, list[int]] = {}
    for member in sorted(owned):
        has = sorted(owned[member])
        is_more = more > 0 and len(has) > few
        more -= is_more
        shares[member] = has[: few + is_more]
    taken = {partition for those in shares.values() for partition in those}
    left = iter([partition for partition in range(partitions) if partition not in taken])
    for those in shares.values():
        while len(those) < few:
            those.append(next(left))
    for those, partition in zip(
        (those for those in shares.values() if len(those) == few), left, strict=False
    ):
        those.append(partition)
    return shares


SHARES: Final[Mapping[str, Callable[[Shares, int], Shares]]] = {
    "range": range_shares,
    "roundrobin": roundrobin_shares,
    "cooperative-sticky": cooperative_shares,
}
"""The assignors of classic groups. Each takes what the members own, and how many partitions there are."""
