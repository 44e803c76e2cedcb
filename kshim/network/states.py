"""The states of a connection, and what leads from one to the next. Requests are read in one of them only."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class State(Enum):
    """What a connection does; the value says it in the words of docs/architecture.md."""

    READING = "requests are read ahead of their replies"
    FULL = "as many requests are in flight, or bytes of them, as may be"
    STALLED = "the client does not read its replies"
    DRAINING = "the server stops: requests in flight are answered, no more are read"
    CLOSING = "the replies that are ready leave, nothing else is answered"
    LOST = "the client is gone"


class Event(Enum):
    """What moves a connection from one state to another."""

    FILLS = "the bound is reached"
    HAS_ROOM = "less is in flight"
    STALLS = "the transport holds more than the client reads"
    READS = "the client has read what the transport held"
    DRAINS = "the server stops"
    CLOSES = "the server closes it"
    IS_LOST = "the client goes"


_ENDS: Final = {Event.DRAINS: State.DRAINING, Event.CLOSES: State.CLOSING, Event.IS_LOST: State.LOST}

NEXT: Final[Mapping[State, Mapping[Event, State]]] = {
    State.READING: {Event.FILLS: State.FULL, Event.STALLS: State.STALLED, **_ENDS},
    State.FULL: {Event.HAS_ROOM: State.READING, Event.STALLS: State.STALLED, **_ENDS},
    # Requests that were answered meanwhile may have made room, or not.
    State.STALLED: {Event.READS: State.FULL, **_ENDS},
    State.DRAINING: {Event.CLOSES: State.CLOSING, Event.IS_LOST: State.LOST},
    State.CLOSING: {Event.IS_LOST: State.LOST},
    State.LOST: {},
}
"""By state, the events that change it. Any other event means nothing in that state."""
