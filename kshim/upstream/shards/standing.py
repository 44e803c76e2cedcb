"""What a process does with the shards, for people and for health checks."""

from __future__ import annotations

from collections.abc import Mapping

from kshim.upstream.interfaces import SeenShards
from kshim.upstream.shards.failovers import Failovers
from kshim.upstream.shards.roster import Roster
from kshim.upstream.shards.shard import Shard
from kshim.upstream.shards.tenure import Seen


def count_led(shards: Mapping[int, Shard]) -> int:
    """Return how many shards are led here."""
    return sum(shard.is_led for shard in shards.values())


def why_not_ready(shards: Mapping[int, Shard], roster: Roster, topic: str, group_id: str) -> str:
    """See `GroupShards.why_not_ready`."""
    if roster.assigned is None:
        return f"kshim is not yet a member of group {group_id} of the upstream"
    wanted = len(roster.ours)
    if not wanted or count_led(shards):
        return ""
    return f"none of the {wanted} shards of {topic} that this kshim is to lead is led"


def seen_shards(shards: Mapping[int, Shard], roster: Roster, failovers: Failovers) -> SeenShards:
    """See `GroupShards.seen`."""
    led: list[Seen] = [seen for shard in shards.values() if (seen := shard.seen()) is not None]
    return SeenShards(
        assigned=len(roster.ours),
        led=len(led),
        taken_over=failovers.taken_over,
        lost=failovers.lost,
        queued=sum(each.queued for each in led),
        lag_s=max((each.lag_ms for each in led), default=0) / 1000,
        proof_age_s=max((each.proof_age_ms for each in led), default=0) / 1000,
    )
