"""The upstream brokers' answers to ApiVersions, for clients that have not authenticated yet, and for those
that come to a coordinator.

A client that has not authenticated must not cause a connection to the upstream, because that connection would
have kshim's login. So kshim asks each broker itself, on one connection at a time, and keeps the answer for a
minute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.storage.clock import TimerClock
from kshim.turns.promise import Promise
from kshim.upstream.link import Link, LinkError
from schemas.messages.api_versions import ApiVersionsResponse

KEPT_S = 60.0
AGAIN_S = 1.0
"""How long kshim waits before it asks a broker again that did not answer."""


@dataclass(slots=True)
class _Broker:
    answer: ApiVersionsResponse | None = None
    asked_s: float = float("-inf")
    fault: LinkError | None = None
    """Why the last question failed; None if it was answered."""
    is_asked: bool = False
    waiting: list[Promise[ApiVersionsResponse]] = field(default_factory=list)


class BrokerVersions:
    """The ApiVersions answers, by broker."""

    def __init__(self, clock: TimerClock, connect: Callable[[int], Deferred[Link]]) -> None:
        """connect: makes a link to a broker, by its node id; errbacks LinkError."""
        self._clock = clock
        self._connect = connect
        self._brokers: dict[int, _Broker] = {}

    async def of_first(self, node_ids: Sequence[int]) -> ApiVersionsResponse:
        """Return the answer of the first of these brokers that answers. Raises LinkError if none does."""
        for node_id in node_ids[:-1]:
            with suppress(LinkError):
                return await self.of(node_id)
        return await self.of(node_ids[-1])

    async def of(self, node_id: int) -> ApiVersionsResponse:
        """Return a broker's answer. An old answer is returned once more while the broker is asked again.
        Raises LinkError.
        """
        broker = self._brokers.setdefault(node_id, _Broker())
        age_s = self._clock.seconds() - broker.asked_s
        if not broker.is_asked and age_s >= (AGAIN_S if broker.fault is not None else KEPT_S):
            self._ask(node_id, broker)
        if broker.answer is not None:
            return broker.answer
        if not broker.is_asked:
            assert broker.fault is not None
            raise broker.fault
        answer: Promise[ApiVersionsResponse] = Promise()
        broker.waiting.append(answer)
        return await answer

    def _ask(self, node_id: int, broker: _Broker) -> None:
        broker.is_asked, broker.asked_s = True, self._clock.seconds()

        def linked(link: Link) -> None:
            broker.answer, broker.fault = link.answered, None
            link.close()
            self._answer(broker)

        def lost(failure: Failure) -> None:
            assert isinstance(failure.value, LinkError)
            broker.fault = failure.value
            self._answer(broker)

        self._connect(node_id).addCallbacks(linked, lost)

    def _answer(self, broker: _Broker) -> None:
        broker.is_asked = False
        waiting, broker.waiting = broker.waiting, []
        for each in waiting:
            each.answer_alone(broker.answer or broker.fault)
