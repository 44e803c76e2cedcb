"""The states of a passage, and the events that change them.

Requests and responses go through it independently: requests by `State`, responses by `Flow`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class State(Enum):
    """The state of requests. The values are the words of docs/upstream.md."""

    CONNECTING = "the connection is being made; requests wait for it"
    FULL = "the connection is being made, and so much waits for it that the client is not read from"
    OPEN = "requests are sent on"
    STALLED = "the broker does not read, so the client is not read from; requests already read are sent on"
    LOGGING_IN = "the login is renewed; requests wait for it, and the client is not read from"
    LOGIN_STALLED = "the login is renewed, and the broker does not read; requests wait"
    LEFT = "the client left before the connection was made; its requests wait for the connection"
    CLOSING = "the client has left; its requests are sent on, then the connection is closed"
    OVER = "nothing is sent on: the broker is lost, or the client left while the login was renewed"


class Flow(Enum):
    """The state of responses. The values are the words of docs/upstream.md."""

    FLOWING = "responses are received and handed over"
    WAITING = "a large response waits until the replies before it have left; nothing more is received"
    UNREAD = "the client does not read its replies; nothing more is received"


class Event(Enum):
    """An event that moves a passage to another state."""

    FILLS = "the limit of what may wait for the connection is reached"
    CONNECTS = "the connection is made, and the first login is done"
    BROKER_STALLS = "the transport holds more than the broker reads"
    BROKER_READS = "the broker has read what the transport held"
    LOGIN_BEGINS = "the login has to be renewed before the next request"
    LOGIN_ENDS = "the login is renewed"
    CLIENT_LEAVES = "the client's connection is closed"
    LOSES_BROKER = "the connection is lost, cannot be made, or is given up"

    MUST_WAIT = "what is received next may not leave yet"
    MAY_LEAVE = "what is received next may leave"
    CLIENT_STALLS = "the client's transport holds more than the client reads"
    CLIENT_READS = "the client has read what its transport held"


_LOST: Final = {Event.LOSES_BROKER: State.OVER}

NEXT: Final[Mapping[State, Mapping[Event, State]]] = {
    State.CONNECTING: {
        Event.FILLS: State.FULL,
        Event.CONNECTS: State.OPEN,
        Event.CLIENT_LEAVES: State.LEFT,
        **_LOST,
    },
    State.FULL: {Event.CONNECTS: State.OPEN, Event.CLIENT_LEAVES: State.LEFT, **_LOST},
    State.OPEN: {
        Event.BROKER_STALLS: State.STALLED,
        Event.LOGIN_BEGINS: State.LOGGING_IN,
        Event.CLIENT_LEAVES: State.CLOSING,
        **_LOST,
    },
    State.STALLED: {
        Event.BROKER_READS: State.OPEN,
        Event.LOGIN_BEGINS: State.LOGIN_STALLED,
        Event.CLIENT_LEAVES: State.CLOSING,
        **_LOST,
    },
    # To OVER when the client leaves: no response is read any more, so the login cannot end.
    State.LOGGING_IN: {
        Event.BROKER_STALLS: State.LOGIN_STALLED,
        Event.LOGIN_ENDS: State.OPEN,
        Event.CLIENT_LEAVES: State.OVER,
        **_LOST,
    },
    State.LOGIN_STALLED: {
        Event.BROKER_READS: State.LOGGING_IN,
        Event.LOGIN_ENDS: State.STALLED,
        Event.CLIENT_LEAVES: State.OVER,
        **_LOST,
    },
    State.LEFT: {Event.CONNECTS: State.CLOSING, **_LOST},
    State.CLOSING: _LOST,
    State.OVER: {},
}
"""By state: the events that change it. Any other event leaves it as it is."""

FLOWS: Final[Mapping[Flow, Mapping[Event, Flow]]] = {
    Flow.FLOWING: {Event.MUST_WAIT: Flow.WAITING, Event.CLIENT_STALLS: Flow.UNREAD},
    Flow.WAITING: {Event.MAY_LEAVE: Flow.FLOWING, Event.CLIENT_STALLS: Flow.UNREAD},
    # To WAITING, because replies may still have to leave first; MAY_LEAVE follows if they do not.
    Flow.UNREAD: {Event.CLIENT_READS: Flow.WAITING},
}
"""By flow: the events that change it. In LEFT, CLOSING and OVER nothing is received, and no event counts."""

SENDING: Final = (State.OPEN, State.STALLED, State.CLOSING)
"""Requests are sent on at once."""
RENEWABLE: Final = (State.OPEN, State.STALLED)
"""The login is renewed when it is due."""
UNCONNECTED: Final = (State.CONNECTING, State.FULL, State.LEFT)
ENDED: Final = (State.LEFT, State.CLOSING, State.OVER)
"""Nothing is received, and the client hears nothing of the broker."""
