"""Counts the requests of each API, and measures how long their answers take.

It runs only in a server whose metrics may be asked for, and adds little to a request: reading a clock twice
would cost more than all else in it. An answer that waits for a disk, for records or for a rebalance is always
timed. An answer that comes at once takes some microseconds, so only one in EACH is timed; it stands for the
others of its API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TypeVar

from kshim.callers import Client
from kshim.network.frames import Beginning
from kshim.network.shared import AnswerFunction, Dispatch, Response
from kshim.storage.durations import Durations
from kshim.turns import Turn
from kshim.turns.promise import Promise
from schemas.api_key import ApiKey

EACH = 17
"""No divisor of the number of requests that clients send together."""
_API_KEYS = 256
"""More than there are. The second byte of a frame identifies its API."""
B = TypeVar("B")


@dataclass(slots=True)
class _Api:
    """The requests of one API."""

    durations: Durations = field(default_factory=Durations)
    at_once_s: float | None = None
    """How long the last timed answer at once took; None before the first one."""
    counted: int = 0
    """How many of the answers that it stands for are in `durations`."""

    def count(self, left: int) -> None:
        """Count the answers at once since the last timed one. left: how many precede the next timed one."""
        if self.at_once_s is not None:
            self.durations.add(self.at_once_s, EACH - left - self.counted)
            self.counted = EACH - left


class Traffic:
    """The requests of all brokers of this process."""

    def __init__(self) -> None:
        self.refused = 0
        """Requests whose only answer was a closed connection."""
        self._sent_later_bytes = 0
        self._bytes: list[Callable[[], tuple[int, int]]] = []
        self._apis: dict[int, _Api] = {}
        self._left = [0] * _API_KEYS
        """The number of answers at once before the next timed one, by API key."""

    @property
    def received_bytes(self) -> int:
        """Bytes of all requests."""
        return sum(received for received, _ in (read() for read in self._bytes))

    @property
    def sent_bytes(self) -> int:
        """Bytes of all replies."""
        return sum(sent for _, sent in (read() for read in self._bytes)) + self._sent_later_bytes

    def measured(self, answer: AnswerFunction[B], broker: B) -> Dispatch:
        """Wrap `answer` for that broker, so that its requests are counted and timed."""
        left, timed, made = self._left, partial(self._timed, answer, broker), self._made
        received_bytes = sent_bytes = 0  # local variables cost least

        def measure(frame: bytes | bytearray, client: Client, turn: Turn) -> Response | Promise[Response]:
            nonlocal received_bytes, sent_bytes
            length = len(frame)
            api_key = frame[1] if length > 1 else 0
            untimed = left[api_key]
            try:
                if untimed:
                    left[api_key] = untimed - 1
                    reply = answer(broker, frame, client, turn)
                else:
                    reply = timed(api_key, frame, client, turn)
            except Exception:
                self.refused += 1
                left[api_key] += untimed > 0
                raise
            received_bytes += length if type(frame) is not Beginning else frame.size
            if type(reply) is bytes:
                sent_bytes += len(reply)
            elif isinstance(reply, Promise):  # the connection reports when it is kept
                if untimed:
                    left[api_key] += 1
                    turn.made = partial(made, api_key, perf_counter())
            elif reply is not None:
                sent_bytes += len(reply)
            return reply

        self._bytes.append(lambda: (received_bytes, sent_bytes))
        return measure

    def durations(self) -> Iterator[tuple[str, Durations]]:
        """Yield the durations so far of each API's answers, by its name."""
        for api_key, api in sorted(self._apis.items()):
            api.count(self._left[api_key])
            yield ApiKey(api_key).title, api.durations

    def _timed(
        self,
        answer: AnswerFunction[B],
        broker: B,
        api_key: int,
        frame: bytes | bytearray,
        client: Client,
        turn: Turn,
    ) -> Response | Promise[Response]:
        began_s = perf_counter()
        reply = answer(broker, frame, client, turn)
        if isinstance(reply, Promise):
            turn.made = partial(self._made, api_key, began_s)
            return reply
        api = self._api(api_key)
        api.count(self._left[api_key])
        api.at_once_s, api.counted = perf_counter() - began_s, 0
        self._left[api_key] = EACH - 1
        return reply

    def _made(self, api_key: int, began_s: float, reply: Response | Exception) -> None:
        """Time a reply that has come later, or count the failure in its place."""
        if isinstance(reply, Exception):
            self.refused += 1
            return
        if reply is not None:
            self._sent_later_bytes += len(reply)
        self._api(api_key).durations.add(perf_counter() - began_s)

    def _api(self, api_key: int) -> _Api:
        api = self._apis.get(api_key)
        if api is None:
            api = self._apis[api_key] = _Api()
        return api
