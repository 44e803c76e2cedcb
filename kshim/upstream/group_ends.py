"""Learns where the partitions end for which groups have committed offsets, before people look at lag."""

from __future__ import annotations

import logging
from contextlib import suppress

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from kshim.control.commands import Command
from kshim.turns import Turn
from kshim.turns.slices import Slices
from kshim.upstream.ends import Ends
from kshim.upstream.here import Here
from kshim.upstream.link import LinkError
from kshim.upstream.topics import Topics

logger = logging.getLogger(__name__)

GROUP_US = 30
PATIENCE_S = 2.0
"""How long the page waits for the ends of partitions; then it shows the last known ones."""


class GroupEnds:
    """Asks for the topics of all groups, then for the ends of their partitions."""

    def __init__(self, here: Here, topics: Topics, ends: Ends) -> None:
        self._here = here
        self._topics = topics
        self._ends = ends

    def look_for_a_while(self) -> Deferred[None]:
        """Ask for the ends. Fires when they are known, after PATIENCE_S at the latest."""
        over: Deferred[None] = Deferred()
        enough = self._here.clock.callLater(PATIENCE_S, over.callback, None)

        def looked(_: object) -> None:
            if enough.active():
                enough.cancel()
                over.callback(None)

        Deferred.fromCoroutine(self.look()).addErrback(_log_fault).addCallback(looked)
        return over

    def before(self, command: Command) -> Command:
        """Wrap a command, so that it first asks for the ends."""

        async def run(*arguments: object) -> object:
            await self.look()
            return await maybeDeferred(command.run, *arguments)

        return Command(run, command.types)

    async def look(self) -> None:
        """Ask for the ends. Returns when they are known, or the upstream did not answer."""
        await self._learn_topics()
        await self._ends.look()

    async def _learn_topics(self) -> None:
        """Learn the topics for which groups have committed. After a start, no client has named them yet."""
        groups, names = self._here.groups, set()
        slices = Slices(self._here.rounds, Turn())
        for group_id in groups.group_ids():
            await slices.spend(GROUP_US)
            group = groups.see(group_id)
            names |= {name for name, _ in group.partitions} if group is not None else set()
        missing = self._topics.missing(names)
        if missing:
            with suppress(LinkError):  # the upstream is gone for now
                await self._topics.learn(missing)


def _log_fault(failure: Failure) -> None:
    logger.error("internal error: %s", failure.getTraceback())
