"""Keeps the last rebalances of each group, and the last events of the server, within bounds.

A restart forgets them. Rebalances are bounded in number for each group, and in bytes for all groups together;
the oldest ones of all are forgotten first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from sys import getsizeof
from typing import NamedTuple

from kshim.coordination.groups.rebalance_record import Rebalance, RebalanceBegan

MOST_BYTES = 32 * 1024 * 1024
MOST_OF_A_GROUP = 100
MOST_EVENTS = 5_000
MOST_EVENT_BYTES = 8 * 1024 * 1024
"""Most bytes of all kept events together. Clients choose how long the group ids in them are."""
EVENT_BYTES = 250
"""The approximate size of an event without its texts."""
REBALANCES = frozenset({Rebalance.kind, RebalanceBegan.kind})
MOST_TEXT = 1_000
"""Most characters of an event's text. Clients choose the names in it."""


class Event(NamedTuple):
    """Something that has happened. Each event's number is one higher than the last one's."""

    number: int
    at_ms: int
    """When it happened, in ms since 1970."""
    kind: str
    """The kind of event, such as "rebalance"."""
    group_id: str
    """The group that it is about; empty if it is not about one group."""
    text: str
    """A line for people."""
    shard: int | None = None
    """The shard of groups that it is about, if it is about one."""

    @property
    def size(self) -> int:
        """The approximate size in memory, in bytes."""
        return EVENT_BYTES + getsizeof(self.group_id) + getsizeof(self.text)


class _Kept(NamedTuple):
    number: int
    rebalance: Rebalance
    size: int


class Recorder:
    """Keeps the rebalances and events that the server reports, and calls the watchers."""

    def __init__(
        self,
        now_ms: Callable[[], int],
        most_bytes: int = MOST_BYTES,
        most_of_a_group: int = MOST_OF_A_GROUP,
    ) -> None:
        """now_ms: returns the time, in ms since 1970."""
        self._now_ms = now_ms
        self._most_bytes, self._most_of_a_group = most_bytes, most_of_a_group
        self._of_group: dict[str, deque[_Kept]] = {}
        self._count = 0
        self._by_age: deque[_Kept] = deque()
        """All kept rebalances by age, mixed with some that are forgotten already."""
        self.bytes = 0
        """The approximate size of the kept rebalances."""
        self._events: deque[Event] = deque()
        self.event_bytes = 0
        """The approximate size of the kept events."""
        self.last_number = 0
        """The number of the last event; 0 before the first."""
        self._watchers: dict[object, Callable[[Event], object]] = {}

    def add(self, report: object) -> None:
        """Keep something that has just happened, and call the watchers.

        Its str() becomes the event's text; its `kind`, `group_id` and `shard`, if it has them, the event's
        fields.
        """
        self.last_number += 1
        if isinstance(report, Rebalance):
            self._keep(_Kept(self.last_number, report, report.size))
        kind, group_id = getattr(report, "kind", "other"), getattr(report, "group_id", "")
        shard = getattr(report, "shard", None)
        event = Event(self.last_number, self._now_ms(), kind, group_id, str(report)[:MOST_TEXT], shard)
        self._keep_event(event)
        for watcher in tuple(self._watchers.values()):
            watcher(event)

    def rebalances(self, group_id: str) -> tuple[Rebalance, ...]:
        """The kept rebalances of a group, the earliest first."""
        return tuple(kept.rebalance for kept in self._of_group.get(group_id, ()))

    def last(self, group_id: str) -> Rebalance | None:
        """The last rebalance of a group; None if none is kept."""
        kept = self._of_group.get(group_id)
        return kept[-1].rebalance if kept else None

    def events_after(self, number: int) -> list[Event]:
        """The kept events with numbers above `number`, in order."""
        wanted = max(self.last_number - number, 0)
        return list(islice(reversed(self._events), wanted))[::-1]

    def incidents(self, group_id: str, shard: int) -> list[Event]:
        """The kept events about a group, or its shard, except rebalances."""
        return [
            event
            for event in self._events
            if (event.group_id == group_id or event.shard == shard) and event.kind not in REBALANCES
        ]

    def watch(self, watcher: Callable[[Event], object]) -> Callable[[], None]:
        """Call `watcher(event)` after each event. Return a function that ends this."""
        key = object()
        self._watchers[key] = watcher

        def unwatch() -> None:
            self._watchers.pop(key, None)

        return unwatch

    # ---- inside

    def _keep_event(self, event: Event) -> None:
        self._events.append(event)
        self.event_bytes += event.size
        while len(self._events) > MOST_EVENTS or self.event_bytes > MOST_EVENT_BYTES:
            self.event_bytes -= self._events.popleft().size

    def _keep(self, kept: _Kept) -> None:
        of_group = self._of_group.setdefault(kept.rebalance.group_id, deque())
        of_group.append(kept)
        self._by_age.append(kept)
        self._count += 1
        self.bytes += kept.size
        if len(of_group) > self._most_of_a_group:
            self._forget_first(kept.rebalance.group_id)
        while self.bytes > self._most_bytes:
            oldest = self._by_age.popleft()
            if self._is_kept(oldest):
                self._forget_first(oldest.rebalance.group_id)
        if len(self._by_age) > 2 * self._count + self._most_of_a_group:
            self._by_age = deque(filter(self._is_kept, self._by_age))

    def _is_kept(self, kept: _Kept) -> bool:
        of_group = self._of_group.get(kept.rebalance.group_id)
        return of_group is not None and of_group[0].number <= kept.number

    def _forget_first(self, group_id: str) -> None:
        of_group = self._of_group[group_id]
        self.bytes -= of_group.popleft().size
        self._count -= 1
        if not of_group:
            del self._of_group[group_id]
