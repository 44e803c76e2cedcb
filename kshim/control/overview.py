"""The question about all groups at once: how each one is, how far behind, and how restless."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kshim.cluster import Cluster
from kshim.control.commands import Command, Commands
from kshim.control.rows import ROW_US, facts_of, progress
from kshim.coordination.interfaces import Groups
from kshim.recorder.recorder import Recorder
from kshim.recorder.scores import scores
from kshim.requests.context import Turn
from kshim.requests.rounds import Rounds
from kshim.requests.slices import Slices
from kshim.storage.clock import Clock
from kshim.storage.interfaces import Log

PART_US = 1
"""What it costs to look at one member's part in a rebalance."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Reads the groups a few at a time, so that clients are served meanwhile."""

    cluster: Cluster
    groups: Groups
    log: Log
    recorder: Recorder
    rounds: Rounds
    wall_clock: Clock
    """The time that is recorded."""

    def commands(self) -> Commands:
        return {"groups": Command(self.all_groups)}

    async def all_groups(self) -> dict[str, Any]:
        """The groups, by name, as JSON values, and the time they were read at."""
        slices = Slices(self.rounds, Turn())
        found = []
        for group_id in sorted(self.groups.group_ids()):
            shown = await self._one(slices, group_id)
            if shown is not None:
                found.append(shown)
        return {"now_ms": self._now_ms(), "groups": found}

    async def _one(self, slices: Slices, group_id: str) -> dict[str, Any] | None:
        kept = self.recorder.rebalances(group_id)
        await slices.spend(ROW_US + PART_US * sum(len(each.parts) for each in kept))
        group, waits = self.groups.see(group_id), self.groups.waits_for(group_id)
        if group is None or waits is None:
            return None
        far = await progress(self, slices, group)
        return {
            **facts_of(group),
            "members": len(group.members),
            "committed": far.committed,
            "lag": far.lag,
            "because": waits["because"],
            "began_ms": waits["began_ms"],
            "waits_for": [*waits["to_join"], *waits["to_join_first"], *waits["to_sync"]],
            "last": {"cause": kept[-1].trigger.value, "ended_ms": kept[-1].ended_ms} if kept else None,
            "scores": scores(kept, self._now_ms()),
        }

    def _now_ms(self) -> int:
        return int(self.wall_clock.seconds() * 1000)
