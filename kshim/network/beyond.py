"""The far side of a client's connection whose requests may go on to another server.

At a local server nothing is beyond a connection, and this costs it nothing.
"""

from __future__ import annotations

from typing import Protocol


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
