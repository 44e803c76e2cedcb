"""Bounds the memory for incomplete requests over all connections (queued.max.request.bytes).

Clients may send frames of 100 MB in as many pieces as they like. When incomplete frames and unread replies
together take too much memory, a connection that has sent more than its share is not read from until they take
less. If the memory is full of frames that nobody may complete, one connection goes on, and has PATIENCE_S to
send the rest.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from kshim.network.states import Wait
from kshim.storage.clock import Call, Clock
from kshim.turns.unread import MOST_BYTES, Unread

LOOK_S = 0.05
PATIENCE_S = 30.0
MODEST_BYTES = 1024 * 1024
"""A smaller frame, like an ordinary Produce, does not wait."""
CHUNK_BYTES = 64 * 1024
"""How much a connection may receive at once."""


class Sender(Hashable, Protocol):
    """A connection that sends frames."""

    def wait(self, reason: Wait) -> None:
        """Receive nothing until `go_on` is called with the same reason."""

    def go_on(self, reason: Wait) -> None:
        """Receive again, unless there is another reason to wait."""

    def refuse_slow(self, why: str) -> None:
        """Close the connection, because others wait for its memory."""


class Intake:
    """Counts the bytes of incomplete frames."""

    def __init__(self, clock: Clock, unread: Unread, max_bytes: int) -> None:
        """max_bytes: limit for incomplete frames and unread replies together; -1 for MOST_BYTES."""
        self._clock = clock
        self._unread = unread
        self._max_bytes = MOST_BYTES if max_bytes < 0 else max_bytes
        self._cut: dict[Sender, int] = {}  # bytes that each has sent of an incomplete frame
        self._cut_bytes = 0
        self._waiting: dict[Sender, float] = {}  # since when, in seconds; the longest wait comes first
        self._first: Sender | None = None  # goes on although there is no room
        self._first_until_s = 0.0
        self._timer: Call | None = None

    @property
    def cut_bytes(self) -> int:
        """Bytes of all incomplete frames."""
        return self._cut_bytes

    @property
    def max_bytes(self) -> int:
        """Limit for incomplete frames and unread replies together."""
        return self._max_bytes

    def count(self, sender: Sender, cut_bytes: int) -> None:
        """Note that a connection has so many bytes of an incomplete frame; 0 for none."""
        more_bytes = cut_bytes - self._cut.pop(sender, 0)
        self._cut_bytes += more_bytes
        if not cut_bytes:
            self._waiting.pop(sender, None)
            if sender is self._first:
                self._first = None
            return
        self._cut[sender] = cut_bytes
        is_greedy = cut_bytes >= min(MODEST_BYTES, self._max_bytes // len(self._cut))
        if more_bytes > 0 and is_greedy and sender is not self._first and self._left_bytes() <= 0:
            self._waiting[sender] = self._clock.seconds()
            sender.wait(Wait.MEMORY)
            self._look_later()

    def _left_bytes(self) -> int:
        return self._max_bytes - self._cut_bytes - self._unread.bytes

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = self._clock.callLater(LOOK_S, self._look)

    def _look(self) -> None:
        """Resume the connections for which there is room again."""
        self._timer = None
        for sender in list(self._waiting)[: max(0, self._left_bytes()) // CHUNK_BYTES]:
            del self._waiting[sender]
            sender.go_on(Wait.MEMORY)
        now_s = self._clock.seconds()
        if self._waiting and self._first is None:
            self._prefer(now_s)
        elif self._waiting and self._first is not None and now_s >= self._first_until_s:
            self._first.refuse_slow(
                f"sent no whole request within {PATIENCE_S:.0f} s, while others wait for its memory"
            )
        if self._waiting:
            self._look_later()

    def _prefer(self, now_s: float) -> None:
        """Resume the first waiting connection, if no other will free the memory, or if it has waited long."""
        sender, since_s = next(iter(self._waiting.items()))
        if 2 * self._cut_bytes >= self._max_bytes or now_s >= since_s + PATIENCE_S:
            del self._waiting[sender]
            self._first, self._first_until_s = sender, now_s + PATIENCE_S
            sender.go_on(Wait.MEMORY)
