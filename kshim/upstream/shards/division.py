"""Divides the shards among the processes: as evenly as possible, with as few moves as possible, and to
processes that the shards answer. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

ALL_ANSWER: Mapping[str, Collection[int]] = {}


def divide(
    shards: int, owned: Mapping[str, Collection[int]], silent: Mapping[str, Collection[int]] = ALL_ANSWER
) -> dict[str, list[int]]:
    """Return the shards of each member.

    owned: all members, with the shards that each leads now. If several lead the same shard, the first by name
    keeps it. silent: the shards that do not answer a member; one that answers nobody may go to anybody.
    """
    members = sorted(owned)
    assert members
    of_nobody = set.intersection(*(set(silent.get(member, ())) for member in members))
    unable = {member: set(silent.get(member, ())) - of_nobody for member in members}
    least, more = divmod(shards, len(members))
    free = dict.fromkeys(range(shards))
    kept: dict[str, list[int]] = {}
    for member in members:
        kept[member] = [
            shard for shard in sorted(owned[member]) if shard in free and shard not in unable[member]
        ]
        for shard in kept[member]:
            del free[shard]
    # The members with the most shards keep one more than the others.
    for place, member in enumerate(sorted(members, key=lambda each: -len(kept[each]))):
        quota = least + (place < more)
        for shard in kept[member][quota:]:
            free[shard] = None
        kept[member] = kept[member][:quota]
    able = {shard: [member for member in members if shard not in unable[member]] for shard in free}
    for shard in sorted(free, key=lambda each: (len(able[each]), each)):
        kept[min(able[shard], key=lambda member: len(kept[member]))].append(shard)
    return {member: sorted(kept[member]) for member in members}
