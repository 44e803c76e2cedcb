"""The commands that read the recorder: why groups rebalanced, and which events happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NotRequired, TypedDict

from twisted.internet.defer import Deferred, succeed

from kshim.control.commands import Command, Commands
from kshim.control.long import Long, long_rebalances
from kshim.turns import Turn
from kshim.turns.slices import Slices

if TYPE_CHECKING:
    from kshim.control.groups import GroupSteering
    from kshim.coordination.groups.waiting import WaitsFor
    from kshim.recorder.recorder import Event, Recorder
    from kshim.recorder.shown import ShownRebalance
    from kshim.storage.clock import Clock, TimerClock
    from kshim.turns.aside import Aside
    from kshim.turns.rounds import Rounds

LONGEST_WAIT_MS = 60_000
MOST_EVENTS = 500
"""Most events in one answer."""


class ShownEvent(TypedDict):
    """An event as JSON."""

    number: int
    at_ms: int
    event: str
    group: str | None
    text: str


class ShownEvents(TypedDict):
    """The answer of the command `events`."""

    events: Sequence[ShownEvent]
    last: int
    """The number after which the next call goes on."""


class Reasons(TypedDict):
    """The answer of the command `why`."""

    now_ms: int
    now: WaitsFor | None
    elsewhere: NotRequired[str]
    """A line about the group at the upstream behind kshim; may be empty."""
    coordinated_by: NotRequired[str]
    """The kshim that coordinates the group, if it is not the one that was asked."""
    incidents: Sequence[ShownEvent]
    rebalances: Sequence[ShownRebalance]


class Questions:
    """Answers questions from the recorder's data, with JSON values."""

    def __init__(
        self,
        recorder: Recorder,
        groups: GroupSteering,
        aside: Aside,
        rounds: Rounds,
        clock: TimerClock,
        wall_clock: Clock,
    ) -> None:
        """clock: measures how long an answer waits. wall_clock: the clock of the recorded times."""
        self._recorder = recorder
        self._groups = groups
        self._aside = aside
        self._rounds = rounds
        self._clock = clock
        self._wall_clock = wall_clock

    def commands(self) -> Commands:
        return {
            "why": Command(self.why, (str,)),
            "events": Command(self.events, (int, int)),
        }

    def why(self, group_id: str) -> Long:
        """Return the group's state now (null if it does not exist), its kept rebalances, the earliest first,
        and its `incidents`: all other kept events about it.
        """
        kept = self._recorder.rebalances(group_id)
        incidents = self._recorder.incidents(group_id, self._groups.shard_for(group_id))
        now, now_ms = self._groups.explain(group_id), int(self._wall_clock.seconds() * 1000)
        shown = {"now_ms": now_ms, "now": now, "incidents": [shown_event(each) for each in incidents]}
        slices = Slices(self._rounds, Turn())
        return Long(shown, {"rebalances": long_rebalances(self._aside, slices, kept)})

    def events(self, after: int, wait_ms: int) -> Deferred[ShownEvents]:
        """Return at most MOST_EVENTS events with numbers above `after`, and `last`, the next call's `after`.

        If there are none yet, wait for the next ones, at most `wait_ms`. after: -1 for new events only.
        """
        recorder = self._recorder
        after = recorder.last_number if after < 0 else after
        found = recorder.events_after(after)
        if found or wait_ms <= 0:
            return succeed(_numbered(found, recorder.last_number))
        come: Deferred[ShownEvents] = Deferred()

        def answer(*_: object) -> None:
            unwatch()
            if timeout.active():
                timeout.cancel()
            # In the next turn: other events of this moment are sent with it.
            self._clock.callLater(0, lambda: come.callback(_numbered(recorder.events_after(after), after)))

        unwatch = recorder.watch(answer)
        timeout = self._clock.callLater(min(wait_ms, LONGEST_WAIT_MS) / 1000, answer)
        return come


def shown_event(event: Event) -> ShownEvent:
    """An event as a JSON value."""
    return {
        "number": event.number,
        "at_ms": event.at_ms,
        "event": event.kind,
        "group": event.group_id or None,
        "text": event.text,
    }


def _numbered(events: list[Event], otherwise: int) -> ShownEvents:
    some = events[:MOST_EVENTS]
    return {"events": [shown_event(each) for each in some], "last": some[-1].number if some else otherwise}
