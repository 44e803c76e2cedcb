"""Remarks on groups that deserve a look: kept, as a list of groups is read twice a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kshim.callers.bounded import forget_first
from kshim.control.overview import GROUP_US, scores_of
from kshim.coordination.groups.rebalance_record import Rebalance
from kshim.recorder.recorder import Recorder
from kshim.recorder.scores import WINDOW_MS, remarks
from kshim.turns.aside import Aside
from kshim.turns.slices import Slices

MOST_KEPT = 10_000
"""Most groups whose remarks are kept."""
MOST_REMARK = 300
"""Most characters of a remark. Clients choose the names in it."""
AGAIN_MS = 30_000
"""Remarks are made anew so often while a rebalance is recent: they say what share of time rebalances took."""


class _Kept(NamedTuple):
    last: Rebalance
    made_ms: int
    remarks: Sequence[str]


class Remarks:
    """The remarks about groups. They are made anew after a rebalance, and while a rebalance is recent."""

    def __init__(self) -> None:
        self._kept: dict[int, _Kept] = {}
        """By the hash of the group id, as clients choose how long that is."""

    async def of(
        self, recorder: Recorder, aside: Aside, slices: Slices, group_id: str, now_ms: int
    ) -> Sequence[str]:
        """The remarks about a group; none if no rebalance is kept."""
        key, last = hash(group_id), recorder.last(group_id)
        if last is None:
            return ()
        kept = self._kept.get(key)
        if kept is not None and kept.last is last:
            is_recent = kept.made_ms < last.ended_ms + WINDOW_MS
            if not is_recent or now_ms - kept.made_ms < AGAIN_MS:
                return kept.remarks
        await slices.spend(GROUP_US)
        found = remarks(await scores_of(aside, recorder.rebalances(group_id), now_ms))
        made = _Kept(last, now_ms, tuple(each[:MOST_REMARK] for each in found))
        self._kept.pop(key, None)
        self._kept[key] = made
        forget_first(self._kept, MOST_KEPT)
        return made.remarks
