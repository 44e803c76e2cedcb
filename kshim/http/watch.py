"""Watches the groups while somebody looks at them: what has changed since a reader looked last.

All readers share one watch, so a hundred open pages cost what one costs. A reader that is slow misses what
lies between: it is told of each group once, as it is then. So nothing is queued for anybody.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from kshim.control.rows import row
from kshim.http.answers import new_slices
from kshim.http.facts import Facts, Json
from kshim.requests.bounded import forget_first

logger = logging.getLogger(__name__)

LOOK_S = 0.5
RESTS = 40
"""The pause between two looks, as a multiple of what one takes: many groups are looked at less often, and
never for more than a fortieth of the time.
"""
MOST_GONE = 1_000
DEAD = "Dead"
"""The state of a group that is gone."""


class GroupWatch:
    """The rows of all groups, as they were at the last look."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._rows: dict[str, tuple[int, Json]] = {}  # with the number of the look that has found it changed
        self._gone: dict[str, tuple[int, Json]] = {}
        self._look = 0
        self._watchers: dict[object, Callable[[], object]] = {}
        self._timer: Any = None
        self._looking: Deferred[None] | None = None

    def watch(self, watcher: Callable[[], object]) -> Callable[[], None]:
        """Look again and again, and call `watcher` when `after` has more to tell. The returned function ends
        that.
        """
        key = object()
        self._watchers[key] = watcher
        if len(self._watchers) == 1:
            self._go_on()
        return lambda: self._leave(key)

    def after(self, look: int, group_id: str | None = None) -> tuple[int, Sequence[Json]]:
        """The rows that have changed after a look, 0 for all; and the look to ask for the next time.

        A group that is gone has the state Dead. group_id: the only group that is asked for.
        """
        kept = (*self._gone.items(), *self._rows.items())
        changed = [found for name, (when, found) in kept if when > look and group_id in (None, name)]
        return self._look, changed

    def _leave(self, key: object) -> None:
        del self._watchers[key]
        if self._watchers:
            return
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        if self._looking is not None:
            self._looking.cancel()

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
            if found is not None and (known is None or known[1] != found):
                self._rows[group_id] = look, found
                self._gone.pop(group_id, None)
                changed = True
        for group_id in self._rows.keys() - found_ids:
            _, gone = self._rows.pop(group_id)
            self._gone[group_id] = look, {**gone, "state": DEAD, "members": 0, "lag": None}
            forget_first(self._gone, MOST_GONE)
            changed = True
        if changed:
            self._look = look
            for watcher in tuple(self._watchers.values()):
                watcher()
