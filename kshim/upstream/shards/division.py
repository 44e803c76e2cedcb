"""Divides the shards among the processes: as evenly as possible, with as few moves as possible. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def divide(shards: int, owned: Mapping[str, Collection[int]]) -> dict[str, list[int]]:
    """Return the shards of each member.

    owned: all members, with the shards that each leads now. If several lead the same shard, the first by name
    keeps it.
    """
    members = sorted(owned)
    assert members
    least, more = divmod(shards, len(members))
    free = dict.fromkeys(range(shards))
    kept: dict[str, list[int]] = {}
    for member in members:
        kept[member] = [shard for shard in sorted(owned[member]) if shard in free]
        for shard in kept[member]:
            del free[shard]
    # The members with the most shards keep one more than the others.
    for place, member in enumerate(sorted(members, key=lambda each: -len(kept[each]))):
        quota = least + (place < more)
        for shard in kept[member][quota:]:
            free[shard] = None
        kept[member] = kept[member][:quota]
        kept[member] += [-1] * (quota - len(kept[member]))
    given = iter(sorted(free))
    return {
        member: sorted(next(given) if shard < 0 else shard for shard in kept[member]) for member in members
    }
