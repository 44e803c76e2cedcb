"""The reasons for which a connection to a broker is lost or cannot be made, worded for the log."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from twisted.internet.error import ConnectError, ConnectionDone, ConnectionLost
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from kshim.client.session import Session


class Lost(NamedTuple):
    """A connection that was lost, or could not be made."""

    why: str
    """A predicate, e.g. "closed the connection"; callers put the broker's name before it."""
    is_refused: bool = False
    """True if trying again is of no use until the broker, or its certificate, is changed."""


class Target(Protocol):
    """An object that gets a connection to a broker."""

    session: Session | None
    """kshim's login on this connection; None without one. Set before the connection is handed over."""

    def makeConnection(self, transport: Any) -> None:  # noqa: N802
        """Take the connection."""

    def lose(self, lost: Lost) -> None:
        """Called when the connection was lost, or could not be made."""


class BrokerRefused(ConnectionLost):
    """The reason of a connection that kshim has closed because something is wrong with the broker."""

    def __init__(self, why: str) -> None:
        """why: a predicate, e.g. "shows a certificate that is not trusted"; callers put the broker's name
        before it.
        """
        super().__init__(why)
        self.why = why


def lost_by(reason: Failure) -> Lost:
    """Make a Lost of a transport's reason."""
    error = reason.value
    if isinstance(error, BrokerRefused):
        return Lost(error.why, is_refused=True)
    more = "" if isinstance(error, ConnectionDone) else f": {reason.getErrorMessage().rstrip('.')}"
    return Lost(f"closed the connection{more}")


def not_reached(error: object) -> Lost:
    """Make a Lost of a connection that could not be made; the reason is in the system's words."""
    number = error.osError if isinstance(error, ConnectError) else None
    return Lost(f"cannot be reached: {os.strerror(number) if number else str(error).rstrip('.')}")
