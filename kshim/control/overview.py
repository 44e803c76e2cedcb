"""The command that lists all groups: the state of each, how far it is behind, and how restless it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NotRequired, TypedDict

from kshim.cluster import KnownCluster
from kshim.control.commands import Command, Commands
from kshim.control.long import Long, in_order
from kshim.control.others import Silent
from kshim.control.rows import GroupRow, facts_of, progress
from kshim.coordination.groups.rebalance_record import Rebalance
from kshim.coordination.interfaces import Groups
from kshim.recorder.recorder import Recorder
from kshim.recorder.scores import Scores, scores
from kshim.storage.clock import Clock
from kshim.storage.interfaces import PartitionEnds
from kshim.turns import Turn
from kshim.turns.aside import Aside
from kshim.turns.rounds import Rounds
from kshim.turns.slices import Slices

GROUP_US = 80
"""Time that reading one group takes. It is more than ROW_US, as more is read."""
LIGHT_PARTS = 2_000
"""Most parts of members in rebalances for scores that are made at once; for more they are made aside."""


class LastRebalance(TypedDict):
    """The cause of a rebalance, and when it ended."""

    cause: str
    ended_ms: int


class ListedGroup(GroupRow):
    """A group in the answer of the command `groups`."""

    committed: int
    because: str
    began_ms: int | None
    waits_for: Sequence[str]
    last: LastRebalance | None
    scores: Scores | None
    """None if a server was asked that has no recorder, over Kafka's protocol."""


class ListedGroups(TypedDict):
    """The answer of the command `groups`."""

    now_ms: int
    groups: Sequence[ListedGroup]
    silent: NotRequired[Sequence[Silent]]
    """The other kshim that do not answer, whose groups are missing; only where several share the groups."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Reads the groups a few at a time, so that clients are served meanwhile."""

    cluster: KnownCluster
    groups: Groups
    ends: PartitionEnds
    recorder: Recorder
    aside: Aside
    rounds: Rounds
    wall_clock: Clock
    """The clock that the recorder's times come from."""

    def commands(self) -> Commands:
        return {"groups": Command(self.all_groups)}

    def all_groups(self) -> Long:
        """All groups, in the order of their ids, and the server's time before they are read."""
        return Long({"now_ms": self._now_ms()}, {"groups": self._groups(Slices(self.rounds, Turn()))})

    async def _groups(self, slices: Slices) -> AsyncIterator[ListedGroup]:
        for group_id in await in_order(slices, self.groups.group_ids()):
            shown = await self._one(slices, group_id)
            if shown is not None:
                yield shown

    async def _one(self, slices: Slices, group_id: str) -> ListedGroup | None:
        kept = self.recorder.rebalances(group_id)
        await slices.spend(GROUP_US)
        scored = await scores_of(self.aside, kept, self._now_ms())
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
            "waits_for": [
                *(*waits["to_join"], *waits["to_join_first"], *waits["to_sync"]),
                *waits.get("to_revoke", ()),
            ],
            "last": {"cause": kept[-1].trigger.value, "ended_ms": kept[-1].ended_ms} if kept else None,
            "scores": scored,
        }

    def _now_ms(self) -> int:
        return int(self.wall_clock.seconds() * 1000)


async def scores_of(aside: Aside, kept: Sequence[Rebalance], now_ms: int) -> Scores:
    """Return a group's scores, from the rebalances of it that are kept."""
    if sum(len(each.parts) for each in kept) <= LIGHT_PARTS:
        return scores(kept, now_ms)
    return await aside.run(partial(scores, kept, now_ms))
