"""The places for connections. There is always one for the next client: the least busy one is closed for it.

So clients that send half a request, or do not read, cannot keep a probe of /healthz from its answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import IntEnum
from typing import Protocol

MOST_CONNECTIONS = 100
MOST_OF_ADDRESS = 80
"""The other places are for other addresses."""


class Busy(IntEnum):
    """How busy a connection is. For a new one, one of the least busy is closed."""

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
        """Take back the place of a connection that is closed."""
        self._taken.pop(connection, None)

    def __iter__(self) -> Iterator[Placed]:
        return iter(list(self._taken))

    def _close_one(self, host: str) -> None:
        """Close the oldest of the least busy connections of an address."""
        closed = min((each for each in self._taken if each.host == host), key=lambda each: each.busy)
        self.leave(closed)
        closed.abort()
