"""Finds clients that get the brokers' addresses and never connect there: advertised.listeners may be wrong.

A client that cannot reach the advertised address asks for the brokers again and again, and sends nothing but
questions. So an address is noticed that has asked ENOUGH times over LEAST_S, if no other request ever came
from it. A wrong alarm costs more trust than a missing one, therefore

* an address from which any other request has come is never noticed again: what is advertised stays the same;
* a client that asks for all topics has got what it wanted, as a tool that lists them;
* a request that names no topic and no group counts only if its connection asked before: health checks
  connect anew each time;
* an answer with an error does not count: its client waits for a topic, or for a broker that was stopped;
* after PAUSE_S without a question the count begins again: idle clients ask every few minutes.

A program that only polls one topic's metadata is noticed wrongly. kafka-python asks only once, and is
not noticed, nor is a client of librdkafka now and then; their own logs name the address that they cannot
reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kshim.callers import Client
from kshim.callers.bounded import forget_first
from kshim.storage.clock import Clock
from schemas.api_key import ApiKey

ENOUGH = 4
LEAST_S = 10.0
PAUSE_S = 60.0
MOST_ASKING = 1_000
MOST_ARRIVED = 10_000
QUESTIONS: Final = frozenset(
    (
        ApiKey.API_VERSIONS,
        ApiKey.METADATA,
        ApiKey.FIND_COORDINATOR,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
    )
)
"""What clients send to any broker, as that of their bootstrap address, before they know the brokers."""


def is_question(api_key: int, request: object) -> bool:
    """True if a client may ask this of any broker. A request for a producer's first id is a question, too."""
    if api_key == ApiKey.INIT_PRODUCER_ID:
        return getattr(request, "transactional_id", None) is None
    return api_key in QUESTIONS


@dataclass(slots=True)
class Asking:
    """The questions of an address from which nothing else has come."""

    first_s: float
    last_s: float
    port: int = -1
    """Of the connection that asked last."""
    times: int = 0

    @property
    def seconds(self) -> float:
        return self.last_s - self.first_s


class Arrivals:
    """Knows which addresses only ask for the brokers. Both tables are bounded: who came first goes first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.asking: dict[str, Asking] = {}
        """By host; mostly empty, so that a request can be known quickly as one that nobody waits for."""
        self._arrived: dict[str, None] = {}

    def has_arrived(self, client: Client) -> bool:
        """True if the client's address is never to be noticed again."""
        return client.address.host in self._arrived

    def came(self, client: Client) -> None:
        """A request came that is no question."""
        host = client.address.host
        if self.asking.pop(host, None):
            self._arrived[host] = None
            forget_first(self._arrived, MOST_ARRIVED)

    def asked(self, client: Client, *, names_any: bool) -> Asking | None:
        """Note that a client got the addresses. Return its questions if it seems unable to reach them.

        names_any: whether it asked about a topic, a group or a transactional id.
        """
        host, port = client.address.host, client.address.port
        if host in self._arrived:
            return None
        now_s = self._clock.seconds()
        asking = self.asking.get(host)
        if asking is None or now_s > asking.last_s + PAUSE_S:
            asking = self.asking[host] = Asking(now_s, now_s)
            forget_first(self.asking, MOST_ASKING)
        if names_any or port == asking.port:
            asking.times += 1
        asking.port, asking.last_s = port, now_s
        return asking if asking.times >= ENOUGH and asking.seconds >= LEAST_S else None
