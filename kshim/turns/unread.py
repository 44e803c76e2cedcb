"""The memory of all connections: replies that clients have not read, and requests that wait for an answer.

A Fetch is answered with at most half of what is left. So clients that read nothing get less and less, and all
others are still served. Any other large answer waits, unwritten, until there is room for it. Meanwhile
clients that hardly read what they have are closed, the one with most first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import NamedTuple, Protocol

from twisted.internet.defer import Deferred

from kshim.configs.endpoint import Endpoint
from kshim.storage.clock import Call, Clock
from kshim.turns.rounds import Rounds

MOST_BYTES = 128 * 1024 * 1024
LEAST_ANSWER_BYTES = 64 * 1024
"""A smaller answer never waits for room."""
MOST_ANSWER_BYTES = 16 * 1024 * 1024
"""Limit of one answer, and of all answers until every connection that is ready has had its turn. Reading and
copying as much takes some 20 ms."""
MAX_ANSWER_ELEMENTS = 1_000_000
"""A request of few bytes may ask for the same again and again."""
MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""The configs of 10,000 topics take half of it."""
ELEMENT_BYTES = 200
"""What an element of an answer takes before it is written, unless answers share it."""
LOOK_S = 0.05
SLOW_S = 3.0
"""Clients that hold memory others wait for must have read a share of it when this time has passed."""
SLOW_SHARE = 10
"""The share: one in so many of the bytes; at least LEAST_ANSWER_BYTES."""


class Holder(Hashable, Protocol):
    """A connection, as far as its answers are concerned."""

    def unread_bytes(self) -> int:
        """The bytes of its answers that its client has not read."""
        ...

    def read_bytes(self) -> int:
        """The bytes that the client has read after it did not read at once; this never decreases."""
        ...

    def abort_slow(self, why: str) -> None:
        """Close without sending what is unread."""


class Reader(Protocol):
    """The client that an answer is for."""

    @property
    def address(self) -> Endpoint: ...
    @property
    def is_gone(self) -> bool: ...


class NoRoom(Exception):
    """An answer cannot wait for room: too much waits already, or its client is gone."""


class _Waiting(NamedTuple):
    client: Reader
    size: int
    weight: int
    granted: Deferred[None]


class _Seen(NamedTuple):
    """The bytes that a client had left unread, and had read, at some time."""

    unread_bytes: int
    read_bytes: int


class Unread:
    """Counts bytes: connections add and remove unread ones; a Fetch adds those that it took from the log."""

    def __init__(self, clock: Clock, rounds: Rounds) -> None:
        self._clock = clock
        self._rounds = rounds
        self._taken_bytes = 0  # in this turn of the reactor
        self._reserved_bytes = 0  # for answers that are being written
        self._waiting: list[_Waiting] = []
        self._granted: Counter[str] = Counter()  # bytes, by address, since answers wait
        self._seen: dict[Holder, _Seen] = {}  # at _seen_s; empty while nobody waits
        self._seen_s = 0.0
        self._timer: Call | None = None
        self.bytes = 0
        self.holders: set[Holder] = set()
        """All connections."""

    def answer_bytes(self) -> int:
        """The bytes of records that an answer may have now, besides its first batch."""
        most = min((MOST_BYTES - self.bytes) // 2, MOST_ANSWER_BYTES - self._taken_bytes)
        return max(LEAST_ANSWER_BYTES, most)

    def taken(self, taken_bytes: int) -> None:
        """Count bytes taken from the log, until other clients have had their turn."""
        if taken_bytes <= LEAST_ANSWER_BYTES:
            return
        if not self._taken_bytes:
            self._clock.callLater(0, self._stand_in_line)
        self._taken_bytes += taken_bytes

    def _stand_in_line(self) -> None:
        """Begin the next turn when all connections that are ready now have had theirs."""
        self._rounds.stand_in_line(self._begin_turn, is_fresh=True)

    def _begin_turn(self) -> None:
        self._taken_bytes = 0

    # ---- large answers

    async def room(self, client: Reader, size: int, elements: int) -> None:
        """Wait until an answer of `size` bytes may be written; then they count until `give_back`.

        Raises NoRoom if the client goes meanwhile, or if more than may be is waiting, and this answer takes
        most.
        """
        if size > LEAST_ANSWER_BYTES and not self._fits(size):
            waiting = _Waiting(client, size, elements * ELEMENT_BYTES, Deferred())
            self._waiting.append(waiting)
            self._look_later()
            self._drop_heaviest()
            await waiting.granted
        else:
            self._reserve(size)

    def give_back(self, size: int) -> None:
        """The answer was handed to its connection, which counts it from now on; or it is not sent."""
        self._reserve(-size)

    def not_read(self, more_bytes: int) -> None:
        """A client does not read these bytes at once."""
        self.bytes += more_bytes
        if self.bytes > MOST_BYTES:
            self._look_later()

    def _reserve(self, size: int) -> None:
        self._reserved_bytes += size
        self.bytes += size

    def _fits(self, size: int) -> bool:
        return self.bytes + size <= MOST_BYTES

    def _drop_heaviest(self) -> None:
        """Refuse answers that wait, if they take more memory than may be."""
        while len(self._waiting) > 1 and sum(each.weight for each in self._waiting) > MOST_BYTES:
            self._refuse(max(self._waiting, key=lambda each: each.weight))

    def _refuse(self, waiting: _Waiting) -> None:
        self._waiting.remove(waiting)
        waiting.granted.errback(NoRoom())

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = self._clock.callLater(LOOK_S, self._look)

    def _look(self) -> None:
        """Resume the answers that have room, and close the connections that keep room from others."""
        self._timer = None
        for waiting in [each for each in self._waiting if each.client.is_gone]:
            self._refuse(waiting)
        if self._waiting or self.bytes > MOST_BYTES:
            held_bytes = self._judge()
            self._grant(is_idle=held_bytes + self._reserved_bytes == 0)
        if self._waiting or self.bytes > MOST_BYTES:
            self._look_later()
        else:
            self._seen = {}
            self._granted.clear()

    def _grant(self, is_idle: bool) -> None:
        """is_idle: nothing is written or unread, so requests alone have the memory: the first answer goes."""
        for waiting in self._in_turn():
            if is_idle or self._fits(waiting.size):
                is_idle = False
                self._waiting.remove(waiting)
                self._granted[waiting.client.address.host] += waiting.size
                self._reserve(waiting.size)
                waiting.granted.callback(None)

    def _in_turn(self) -> list[_Waiting]:
        """The answers that wait: those of the address that was granted least first, small ones first."""
        granted = self._granted.copy()
        ranked = []
        for number, each in enumerate(sorted(self._waiting, key=lambda each: each.size)):
            host = each.client.address.host
            ranked.append((granted[host], number, each))
            granted[host] += each.size
        return [each for _, _, each in sorted(ranked)]

    def _judge(self) -> int:
        """Close those who read too little, as far as their memory is needed; returns what all have unread."""
        seen = {
            holder: _Seen(unread_bytes, holder.read_bytes())
            for holder in self.holders
            if (unread_bytes := holder.unread_bytes()) > LEAST_ANSWER_BYTES
        }
        now_s = self._clock.seconds()
        if not self._seen:
            self._seen, self._seen_s = seen, now_s
        elif now_s >= self._seen_s + SLOW_S:
            self._close_slow(seen)
            self._seen, self._seen_s = seen, now_s
        return sum(each.unread_bytes for each in seen.values())

    def _close_slow(self, seen: dict[Holder, _Seen]) -> None:
        wanted = min(MOST_BYTES, sum(each.size for each in self._waiting))
        slow = [holder for holder, now in seen.items() if _is_slow(self._seen.get(holder), now)]
        for holder in sorted(slow, key=lambda each: seen[each].unread_bytes, reverse=True):
            if self._fits(wanted):
                return
            unread_bytes = seen.pop(holder).unread_bytes
            holder.abort_slow(
                f"hardly reads the {unread_bytes} bytes of its answers, while others wait for their memory"
            )


def _is_slow(before: _Seen | None, now: _Seen) -> bool:
    """True if a client has read too little since `before`."""
    if before is None:
        return False
    return now.read_bytes - before.read_bytes < max(LEAST_ANSWER_BYTES, before.unread_bytes // SLOW_SHARE)
