"""The states of a connection, and the events that change them. Requests are read in READING only."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class _Known(Enum):
    """An enumeration whose members are found in dicts and sets without a call of Python code."""

    __hash__ = object.__hash__


class State(_Known):
    """The state of a connection. The values are the words of docs/architecture.md."""

    READING = "requests are read ahead of their replies"
    FULL = (
        "the limit of requests or bytes in flight is reached, a request must be answered alone, or memory or "
        "a place is missing"
    )
    MUTED = "the client has exceeded a quota: its next request waits until the throttle time is over"
    STALLED = "the client does not read its replies"
    DRAINING = "the server stops: requests in flight are answered, no more are read"
    CLOSING = "the replies that are ready are sent; nothing else is answered"
    LOST = "the client is gone"


class Wait(_Known):
    """The reasons why a FULL connection reads no requests, besides the requests in flight."""

    TURN = "connections that came before it are admitted first, at a limited rate"
    ROUND = "other connections have their turn first"
    PLACE = "the server serves as many connections as it may"
    MEMORY = "it is in the middle of a frame, and unfinished frames take too much memory"
    BROKER = "the broker beyond it does not read"
    CLOSE = "it is refused, and will be closed after a delay"


class Event(_Known):
    """An event that moves a connection to another state."""

    FILLS = "the limit is reached"
    HAS_ROOM = "less is in flight"
    MUTES = "a reply has a throttle time"
    UNMUTES = "the throttle time is over"
    STALLS = "the transport holds more than the client reads"
    READS = "the client has read what the transport held"
    DRAINS = "the server stops"
    CLOSES = "the server closes it"
    IS_LOST = "the client goes"


_ENDS: Final = {Event.DRAINS: State.DRAINING, Event.CLOSES: State.CLOSING, Event.IS_LOST: State.LOST}

NEXT: Final[Mapping[State, Mapping[Event, State]]] = {
    State.READING: {
        Event.FILLS: State.FULL,
        Event.MUTES: State.MUTED,
        Event.STALLS: State.STALLED,
        **_ENDS,
    },
    State.FULL: {
        Event.HAS_ROOM: State.READING,
        Event.MUTES: State.MUTED,
        Event.STALLS: State.STALLED,
        **_ENDS,
    },
    # To FULL, as after STALLED.
    State.MUTED: {Event.UNMUTES: State.FULL, Event.STALLS: State.STALLED, **_ENDS},
    # To FULL, because requests in flight may still fill it; HAS_ROOM follows if they do not.
    State.STALLED: {Event.READS: State.FULL, **_ENDS},
    State.DRAINING: {Event.CLOSES: State.CLOSING, Event.IS_LOST: State.LOST},
    State.CLOSING: {Event.IS_LOST: State.LOST},
    State.LOST: {},
}
"""The next state, by state and event. Any other event leaves the state as it is."""
