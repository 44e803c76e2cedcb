"""The rates of new connections to one broker: in all, at each listener, and from each address (KIP-612).

Pure. A connection beyond the rate of the broker or of its listener is delayed. A connection beyond the rate
of its address is refused, and then counts nowhere. No delay is longer than one sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kshim.quotas.rate import Rate, Window
from kshim.quotas.used import Used

UNLIMITED = 2**31 - 1


class Limits(NamedTuple):
    """The most connections a second; UNLIMITED is no limit."""

    of_broker: int
    of_listener: int
    of_address: int


class ConnectionRates:
    """The rates of recent connections."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._rates = Used(lambda: Rate(window))

    def delay_ms(self, listener: str, limits: Limits, now_ms: int) -> int:
        """Count a connection. Returns how long it must wait, by the rates of the broker and the listener."""
        of_broker = self._counted("broker", limits.of_broker, now_ms)
        return max(of_broker, self._counted(("listener", listener), limits.of_listener, now_ms))

    def refusal_ms(self, listener: str, host: str, limits: Limits, now_ms: int) -> int:
        """Count a connection from address `host`. Returns the time after which to close it, if the address is
        beyond its rate; else 0.
        """
        refusal_ms = self._counted(("address", host), limits.of_address, now_ms)
        if refusal_ms:
            for who, limit in (
                (("address", host), limits.of_address),
                ("broker", limits.of_broker),
                (("listener", listener), limits.of_listener),
            ):
                if limit < UNLIMITED:
                    self._rates.of(who, now_ms).record(-1, now_ms)
        return refusal_ms

    def _counted(self, who: object, limit: int, now_ms: int) -> int:
        if limit >= UNLIMITED:
            return 0
        rate = self._rates.of(who, now_ms)
        rate.record(1, now_ms)
        return min(rate.throttle_ms(limit, now_ms), self._window.sample_ms)


LimitsOf = Callable[[str, str], Limits]
"""Takes a listener and an address; returns the limits of a connection between them."""
