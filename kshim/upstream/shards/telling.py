"""Tells the other processes which shards do not answer this one, when that changes for its own."""

from __future__ import annotations

import logging

from kshim.storage.clock import Clock
from kshim.upstream.shards.membership import Membership
from kshim.upstream.shards.reach import SILENT_S, Reach
from kshim.upstream.shards.roster import Roster

logger = logging.getLogger(__name__)

AGAIN_S = 5.0
"""The least time between two rebalances because shards do not answer, or answer again."""


class Telling:
    """Looks at each poll."""

    def __init__(self, clock: Clock, topic: str, roster: Roster) -> None:
        """topic: the one whose partitions are the shards."""
        self._clock = clock
        self._topic = topic
        self._roster = roster
        self._told_s = 0.0
        """When the others were told last."""

    def look(self, reach: Reach, membership: Membership | None) -> None:
        """Tell what has changed, unless that was done lately, or this process is alone."""
        if membership is None or not self._roster.fellows():
            return
        silent = (reach.silent() & self._roster.ours) - membership.told_silent
        has_news = bool(silent) or not membership.told_silent <= reach.doubtful()
        if not has_news or self._clock.seconds() < self._told_s + AGAIN_S:
            return
        self._told_s = self._clock.seconds()
        if silent:
            logger.warning(
                "%d shards of %s have not answered for %g s, such as shard %d: another kshim is to lead them",
                *(len(silent), self._topic, SILENT_S, min(silent)),
            )
        membership.tell()
