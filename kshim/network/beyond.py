"""The far side of a client's connection whose requests may go on to another server.

At a local server nothing is beyond a connection, and this costs it nothing.
"""

from __future__ import annotations

from typing import Protocol

from kshim.callers import Client
from kshim.network.states import Wait
from kshim.turns import Turn


class Beyond(Protocol):
    """Sends requests on, and brings their replies."""

    gathers: bool
    """Set before requests are answered: what goes on is held back until `flush`."""

    def begins(self, size: int, start: memoryview) -> bool:
        """See `frames.Begins`."""

    def flush(self) -> None:
        """Send the requests that were held back, and hold back no more."""

    def send_part(self, part: memoryview) -> None:
        """Send more of the request that was begun last."""

    def go_on(self) -> None:
        """Called when replies have left, so that a reply that waited for them may follow."""

    def pause(self) -> None:
        """Bring no more replies: the client does not read."""

    def resume(self) -> None:
        """Bring replies again."""

    def close(self) -> None:
        """Called, perhaps twice, when the client's connection is closed."""


class Near(Protocol):
    """A client's connection, as its far side sees it."""

    @property
    def client(self) -> Client: ...
    @property
    def transport(self) -> object: ...
    @property
    def is_let_in(self) -> bool:
        """True if the client may send all requests: it has authenticated, or need not."""

    @property
    def is_seen_by_gate(self) -> bool:
        """True if a gate looks at the client's requests."""

    @property
    def is_idle(self) -> bool:
        """True if the transport may take the next reply from elsewhere: no reply of this turn waits."""

    @property
    def left_bytes(self) -> int:
        """Bytes of a request in parts that have not been received; 0 if requests are not read now."""

    def passed(self, passed_bytes: int) -> None:
        """Note that so many of `left_bytes` went straight on."""

    def is_next(self, turn: Turn) -> bool:
        """True if all replies before that of `turn` have left."""

    def send_part(self, data: bytes | memoryview) -> None:
        """Send part of the next reply. `Sent` stands for it when all of it was sent."""

    def wait(self, reason: Wait) -> None:
        """Read no requests until `go_on` is called with the same reason."""

    def go_on(self, reason: Wait) -> None:
        """Read requests again, unless there is another reason to wait."""

    def refuse_lost(self, why: str) -> None:
        """Close, because the server beyond has closed. why: is logged once for this address."""
