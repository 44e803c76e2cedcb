"""When a connection reads requests: its state, what it waits for, and the throttle time of a quota."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kshim.network.replies import Replies
from kshim.network.states import NEXT, Event, State, Wait
from kshim.storage.clock import Timer, TimerClock


class Transport(Protocol):
    """The client's socket, as far as reading is concerned."""

    def pauseProducing(self) -> None: ...
    def resumeProducing(self) -> None: ...


class Reading:
    """The state of one connection. Requests are read only in READING."""

    __slots__ = (
        *("_clock", "_is_paused", "_mute_timer", "_read_ahead", "_replies", "_transport", "_waits"),
        "state",
    )

    def __init__(
        self, transport: Transport, clock: TimerClock, replies: Replies, read_ahead: Callable[[], None]
    ) -> None:
        """read_ahead: called when a throttle time is over."""
        self._transport = transport
        self._clock = clock
        self._replies = replies
        self._read_ahead = read_ahead
        self._waits: set[Wait] = set()
        self._mute_timer: Timer | None = None  # set while the client is beyond a quota
        self._is_paused = False
        self.state = State.READING

    def happens(self, event: Event) -> None:
        """Change the state as `NEXT` says, and pause the transport when requests are no longer read."""
        before = self.state
        after = self.state = NEXT[before].get(event, before)
        self._replies.is_stalled = after is State.STALLED
        if after is before or after is State.CLOSING or after is State.LOST:
            return
        if after is State.READING:
            if self._is_paused:
                self._is_paused = False
                self._transport.resumeProducing()
        elif before is State.READING:
            self.pause()

    def pause(self) -> None:
        """Receive nothing more until requests are read again."""
        if not self._is_paused:
            self._is_paused = True
            self._transport.pauseProducing()

    def look_for_room(self) -> None:
        """Read again if nothing is waited for and the limits allow it."""
        if self.state is State.FULL and not self._waits and self._replies.has_room():
            self.happens(Event.HAS_ROOM)

    def wait(self, reason: Wait) -> None:
        """Read no requests until `go_on` is called with the same reason."""
        self._waits.add(reason)
        self.happens(Event.FILLS)

    def stand_in_line(self) -> None:
        """Read no requests until `go_on(Wait.ROUND)`. The transport is not paused before more bytes arrive:
        most clients wait for an answer, and to pause and resume costs as much as to answer.
        """
        self._waits.add(Wait.ROUND)
        self.state = NEXT[self.state][Event.FILLS]

    def go_on(self, reason: Wait) -> None:
        """Read again, unless there is another reason to wait."""
        self._waits.discard(reason)
        self.look_for_room()

    def unstall(self) -> None:
        """Read again: the client reads its replies."""
        self.happens(Event.READS)
        if self._mute_timer is not None:
            self.happens(Event.MUTES)
        self.look_for_room()

    def mute(self, throttle_ms: int) -> None:
        """Begin no request until the time is over: the client is beyond a quota (KIP-219)."""
        throttle_s = throttle_ms / 1000
        if self._mute_timer is None:
            self._mute_timer = self._clock.callLater(throttle_s, self._unmute)
        elif self._mute_timer.getTime() < self._clock.seconds() + throttle_s:
            self._mute_timer.reset(throttle_s)
        self.happens(Event.MUTES)

    def _unmute(self) -> None:
        self._mute_timer = None
        self.happens(Event.UNMUTES)
        self.look_for_room()
        self._read_ahead()

    def throttled_s(self) -> float:
        """Return the seconds until the throttle time is over."""
        return 0.0 if self._mute_timer is None else self._mute_timer.getTime() - self._clock.seconds()

    def lose(self) -> None:
        """Read nothing more: the client is gone."""
        self.happens(Event.IS_LOST)
        if self._mute_timer is not None:
            self._mute_timer.cancel()
            self._mute_timer = None
