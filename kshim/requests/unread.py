"""The memory of all connections: replies that clients have not read, and requests that wait for an answer.

A Fetch is answered with at most half of what is left. So clients that read nothing get less and less, and all
others are still served.
"""

from __future__ import annotations

MOST_BYTES = 128 * 1024 * 1024
LEAST_ANSWER_BYTES = 64 * 1024
MOST_ANSWER_BYTES = 16 * 1024 * 1024
"""To read as much from disk, and to copy it, takes some 20 ms."""


class Unread:
    """Counts bytes; the connections add and remove them."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0

    def answer_bytes(self) -> int:
        """How many bytes of records an answer may have now, besides its first batch."""
        return max(LEAST_ANSWER_BYTES, min(MOST_ANSWER_BYTES, (MOST_BYTES - self.bytes) // 2))
