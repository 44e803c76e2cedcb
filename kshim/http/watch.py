"""Finds the groups that have changed since a reader looked last. It watches only while there are readers.

All readers share one watch, so a hundred open pages cost what one costs. Nothing is queued for a slow reader:
it gets each changed group once, with its newest row, and misses the rows before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from kshim.callers.bounded import forget_first
from kshim.http.answers import new_slices
from kshim.http.facts import Facts
from kshim.http.group_rows import ListedGroup, row
from kshim.storage.clock import Call

logger = logging.getLogger(__name__)

LOOK_S = 0.5
RESTS = 40
"""Least pause between two looks, as a multiple of the time that a look takes.

So with many groups there are fewer looks, and they take at most a fortieth of the time.
"""
MOST_GONE = 1_000
GONE_US = 1
DEAD = "Dead"
"""The state of a group that is gone."""


class Seen(NamedTuple):
    """A group's newest row."""

    look: int
    """The number of the look that found this row; the row before it was different."""
    row: ListedGroup


class GroupWatch:
    """The rows of all groups, as the last look found them; none while nobody watches."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._rows: dict[str, Seen] = {}
        """Rows by group id, in the order of their last change."""
        self._gone: dict[str, Seen] = {}
        self._look = 0
        self._watchers: dict[object, Callable[[], object]] = {}
        self._timer: Call | None = None
        self._looking: Deferred[None] | None = None

    def watch(self, watcher: Callable[[], object]) -> Callable[[], None]:
        """Look again and again, and call `watcher` after each look that found a change.

        Return a function that ends this.
        """
        key = object()
        self._watchers[key] = watcher
        if len(self._watchers) == 1:
            self._go_on()
        return lambda: self._leave(key)

    def after(self, look: int, group_id: str | None = None) -> tuple[int, Sequence[str]]:
        """Return the number of the last look, to pass the next time, and the groups that have changed since
        look number `look`; 0 for all groups.

        group_id: return this group only, if it has changed.
        """
        if group_id is not None:
            seen = self._seen(group_id)
            return self._look, [group_id] if seen is not None and seen.look > look else []
        changed: list[str] = []
        for kept in (self._rows, self._gone):
            for name in reversed(kept):
                if kept[name].look <= look:
                    break
                changed.append(name)
        return self._look, changed[::-1]

    def row(self, group_id: str) -> ListedGroup | None:
        """A group's row. A group that was deleted has the state Dead."""
        seen = self._seen(group_id)
        return None if seen is None else seen.row

    def _seen(self, group_id: str) -> Seen | None:
        return self._rows.get(group_id) or self._gone.get(group_id)

    def _leave(self, key: object) -> None:
        del self._watchers[key]
        if self._watchers:
            return
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        if self._looking is not None:
            self._looking.cancel()
        self._rows.clear()
        self._gone.clear()

    def _go_on(self) -> None:
        self._timer = None
        began_s = self._facts.clock.seconds()
        looking = self._looking = Deferred.fromCoroutine(self._look_at_all())
        looking.addErrback(self._failed).addCallback(self._looked, began_s)

    def _failed(self, failure: Failure) -> None:
        """Log why; the next look may succeed."""
        if not isinstance(failure.value, CancelledError):
            logger.error("cannot look at the groups: %s", failure.value)

    def _looked(self, _: None, began_s: float) -> None:
        self._looking = None
        if self._watchers:
            rest_s = RESTS * (self._facts.clock.seconds() - began_s)
            self._timer = self._facts.clock.callLater(max(LOOK_S, rest_s), self._go_on)

    async def _look_at_all(self) -> None:
        look = self._look + 1
        slices = new_slices(self._facts.rounds)
        found_ids = set(self._facts.groups.group_ids())
        changed = False
        for group_id in found_ids:
            found = await row(self._facts, slices, group_id)
            known = self._rows.get(group_id)
            if found is not None and (known is None or known.row != found):
                self._rows.pop(group_id, None)
                self._rows[group_id] = Seen(look, found)
                self._gone.pop(group_id, None)
                changed = True
        for group_id in list(self._rows):
            await slices.spend(GONE_US)
            if group_id in found_ids:
                continue
            gone = self._rows.pop(group_id).row
            self._gone[group_id] = Seen(look, {**gone, "state": DEAD, "members": 0, "lag": None})
            forget_first(self._gone, MOST_GONE)
            changed = True
        if changed:
            self._look = look
            for watcher in tuple(self._watchers.values()):
                watcher()
