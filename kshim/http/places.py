"""The places for connections. If all are taken, the least busy connection is closed for the next client.

So clients that send half a request, or do not read, cannot keep a probe of /healthz from its answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import IntEnum
from typing import Protocol

MOST_CONNECTIONS = 100
MOST_OF_ADDRESS = 80
"""Most places for one address; the other places are for other addresses."""


class Busy(IntEnum):
    """How busy a connection is. One of the least busy is closed if a new one needs its place."""

    WAITS = 0
    """The client has not sent a whole request."""
    UNREAD = 1
    """The client does not read its answer."""
    ANSWERS = 2


class Placed(Protocol):
    """A connection that has a place."""

    @property
    def host(self) -> str: ...
    @property
    def busy(self) -> Busy: ...
    def abort(self) -> None:
        """Close at once."""
        ...


class Places:
    """The connections of one listener, the oldest first."""

    def __init__(self) -> None:
        self._taken: dict[Placed, None] = {}

    def take(self, connection: Placed) -> None:
        """Give a new connection a place; close another one if there are too many."""
        hosts = Counter(each.host for each in self._taken)
        if hosts[connection.host] >= MOST_OF_ADDRESS:
            self._close_one(connection.host)
        elif len(self._taken) >= MOST_CONNECTIONS:
            self._close_one(hosts.most_common(1)[0][0])
        self._taken[connection] = None

    def leave(self, connection: Placed) -> None:
        """Free the place of a closed connection; does nothing if it has none."""
        self._taken.pop(connection, None)

    def __iter__(self) -> Iterator[Placed]:
        return iter(list(self._taken))

    def _close_one(self, host: str) -> None:
        """Close the oldest of the least busy connections of an address."""
        closed = min((each for each in self._taken if each.host == host), key=lambda each: each.busy)
        self.leave(closed)
        closed.abort()
