"""Memory for requests on their way, over all connections (queued.max.request.bytes).

A frame of 100 MB may come in as many pieces as its client likes, and so may those of all others. When there
is too much of them, or of what waits to be answered and read, whoever has sent more than its share is not
read from before there is less. Where frames that nobody may complete take the memory, one goes on, and has
PATIENCE_S to send the rest.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

from kshim.network.states import Wait
from kshim.storage.clock import Clock
from kshim.turns.unread import MOST_BYTES, Unread

LOOK_S = 0.05
PATIENCE_S = 30.0
MODEST_BYTES = 1024 * 1024
"""An ordinary Produce is smaller, and does not wait."""
CHUNK_BYTES = 64 * 1024
"""What a connection may receive at once."""


class Sender(Hashable, Protocol):
    """A connection, as far as memory is concerned."""

    def wait(self, reason: Wait) -> None:
        """Receive nothing until told to go on."""

    def go_on(self, reason: Wait) -> None:
        """Receive again, unless there is another reason to wait."""

    def refuse_slow(self, why: str) -> None:
        """Close, because others wait."""


class Intake:
    """Counts the frames that have not arrived whole."""

    def __init__(self, clock: Clock, unread: Unread, max_bytes: int) -> None:
        """max_bytes: also for what `unread` counts; -1 stands for its MOST_BYTES."""
        self._clock = clock
        self._unread = unread
        self._max_bytes = MOST_BYTES if max_bytes < 0 else max_bytes
        self._cut: dict[Sender, int] = {}  # how much of its frame each has sent
        self._cut_bytes = 0
        self._waiting: dict[Sender, float] = {}  # since when, in seconds; the first began first
        self._first: Sender | None = None  # who goes on although there is too much
        self._first_until_s = 0.0
        self._timer: Any = None

    @property
    def cut_bytes(self) -> int:
        """Of all frames that have not arrived whole."""
        return self._cut_bytes

    @property
    def max_bytes(self) -> int:
        """For these and what `unread` counts."""
        return self._max_bytes

    def count(self, sender: Sender, cut_bytes: int) -> None:
        """A connection has so many bytes of a frame that has not arrived whole; 0 for none."""
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
        """Let those go on for whom there is room again."""
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
        """Let the first go on, if nobody else will free the memory, or if it has waited for long."""
        sender, since_s = next(iter(self._waiting.items()))
        if 2 * self._cut_bytes >= self._max_bytes or now_s >= since_s + PATIENCE_S:
            del self._waiting[sender]
            self._first, self._first_until_s = sender, now_s + PATIENCE_S
            sender.go_on(Wait.MEMORY)
