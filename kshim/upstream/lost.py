"""Why there is no connection to a broker, or none any more; and what is told of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from twisted.internet.error import ConnectError, ConnectionDone, ConnectionLost
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from kshim.upstream.session import Session


class Lost(NamedTuple):
    """A connection to a broker that was lost, or could not be made."""

    why: str
    """In words that follow the broker's name."""
    is_refused: bool = False
    """Whether the broker, or what it shows, has to change before it is of use to try again."""


class Target(Protocol):
    """What is connected to a broker."""

    session: Session | None
    """kshim's login on this connection; None if there is none. Set before the connection is handed over."""

    def makeConnection(self, transport: Any) -> None:  # noqa: N802
        """Take the connection."""

    def lose(self, lost: Lost) -> None:
        """There is no connection, or none any more."""


class BrokerRefused(ConnectionLost):
    """The reason of a connection that was closed here, because something is wrong with the broker."""

    def __init__(self, why: str) -> None:
        """why: in words that follow the broker's name."""
        super().__init__(why)
        self.why = why


def lost_by(reason: Failure) -> Lost:
    """Of a transport's reason."""
    error = reason.value
    if isinstance(error, BrokerRefused):
        return Lost(error.why, is_refused=True)
    more = "" if isinstance(error, ConnectionDone) else f": {reason.getErrorMessage().rstrip('.')}"
    return Lost(f"closed the connection{more}")


def not_reached(error: object) -> Lost:
    """For want of a connection; in the system's words."""
    number = error.osError if isinstance(error, ConnectError) else None
    return Lost(f"cannot be reached: {os.strerror(number) if number else str(error).rstrip('.')}")
