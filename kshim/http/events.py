"""Server-sent events: the recorder's events, each with its number, and the rows of groups as they change.

The recorder and the watch keep the data; a reader has only a position in each. So a slow reader costs no
memory: it falls behind, and catches up with what is still kept.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from twisted.internet.defer import Deferred

from kshim.control.long import encode
from kshim.control.recorder import shown_event
from kshim.control.rows import ROW_US
from kshim.http.answers import Answer, Asked, HttpError
from kshim.http.facts import Facts
from kshim.http.watch import GroupWatch
from kshim.storage.clock import TimerClock
from kshim.turns.slices import Slices

MOST_READERS = 50
MOST_ROWS = 200
"""Groups in one event. If more have changed, several events are sent."""
ALIVE_S = 15.0
"""Longest time without an event. Then a comment shows readers and proxies that the connection lives."""


class Events:
    """GET /events"""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._watch = GroupWatch(facts)
        self._readers = 0

    async def answer(self, facts: Facts, asked: Asked) -> Answer:
        """Return an answer that sends events until the reader disconnects. Raises HttpError."""
        if self._readers >= MOST_READERS:
            raise HttpError(503, f"{MOST_READERS} readers of /events are enough", {"Retry-After": "10"})
        body = self._sent(self._first(asked), asked.query.get("group"), asked.slices)
        return Answer(body, "text/event-stream", headers={"X-Accel-Buffering": "no"})

    def _first(self, asked: Asked) -> int:
        """Return the number of the last event not to send: the last one that the reader has seen, if it names
        one, else the latest. Raises HttpError.
        """
        text = asked.headers.get("last-event-id") or asked.query.get("after")
        if text is None:
            return self._facts.recorder.last_number
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise HttpError(400, f"{text[:100]}: expected the number of the last event that was seen")
        return int(text)

    async def _sent(self, number: int, group_id: str | None, slices: Slices) -> AsyncGenerator[bytes, None]:
        self._readers += 1
        waker = _Waker(self._facts.clock)
        leaves = [self._watch.watch(waker.ring), self._facts.recorder.watch(lambda _: waker.ring())]
        look = 0
        try:
            yield b"retry: 1000\n\n"
            while True:
                for event in self._facts.recorder.events_after(number):
                    await slices.spend(ROW_US)
                    number = event.number
                    if group_id in (None, event.group_id):
                        yield _sse("recorded", shown_event(event), number)
                look, changed = self._watch.after(look, group_id)
                for first in range(0, len(changed), MOST_ROWS):
                    await slices.spend(ROW_US * MOST_ROWS)
                    rows = map(self._watch.row, changed[first : first + MOST_ROWS])
                    yield _sse("groups", [row for row in rows if row is not None])
                if not await waker.woken():
                    yield b": alive\n\n"
        finally:
            self._readers -= 1
            for leave in leaves:
                leave()


class _Waker:
    """Wakes one reader when there is news, or when ALIVE_S are over."""

    def __init__(self, clock: TimerClock) -> None:
        self._clock = clock
        self._has_news = False
        self._waits: Deferred[bool] | None = None

    def ring(self) -> None:
        """Wake the reader: there is news."""
        self._has_news = True
        if self._waits is not None and not self._waits.called:
            self._waits.callback(True)

    async def woken(self) -> bool:
        """Return True as soon as there is news since the last call, or False after ALIVE_S without any."""
        if not self._has_news:
            self._waits = Deferred()
            timer = self._clock.callLater(ALIVE_S, self._waits.callback, False)
            try:
                await self._waits
            finally:
                self._waits = None
                if timer.active():
                    timer.cancel()
        had_news, self._has_news = self._has_news, False
        return had_news


def _sse(kind: str, data: object, number: int | None = None) -> bytes:
    head = b"" if number is None else b"id: %d\n" % number
    return head + b"event: %s\ndata: %s\n\n" % (kind.encode(), encode(data))
