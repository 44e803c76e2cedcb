"""How fast a broker lets connections in: by max.connection.creation.rate, and by the quotas of addresses.

The limits are looked up at each connection, as they can be changed at run time (KIP-612).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kshim.cluster.client_quotas import CONNECTION_RATE, IP, address_of
from kshim.configs.listeners import of_listener
from kshim.network.addresses import unmapped
from kshim.network.places import Limits as Texts
from kshim.network.places import Resolve
from kshim.quotas.connections import UNLIMITED, ConnectionRates, Limits
from kshim.quotas.rate import Window

if TYPE_CHECKING:
    from kshim.cluster.settings import ClientQuotas
    from kshim.configs.config import Config
    from kshim.storage.clock import Clock

RATE = "max.connection.creation.rate"


class Pace:
    """The rates of one broker."""

    def __init__(
        self, texts: Texts, config: Config, quotas: ClientQuotas, resolve: Resolve, clock: Clock
    ) -> None:
        """texts: the broker's properties at this moment."""
        self._texts = texts
        self._config = config
        self._quotas = quotas
        self._resolve = resolve
        self._clock = clock
        self._rates = ConnectionRates(
            Window(config.quota_window_num, config.quota_window_size_seconds * 1000)
        )
        self._of_all = UNLIMITED
        self._by_address: dict[str, int] = {}
        quotas.watch(self._look)
        self._look()

    def delay_ms(self, listener: str) -> int:
        """How long the next connection to a listener must wait."""
        return self._rates.delay_ms(listener, self._limits(listener, ""), self._now_ms())

    def refusal_ms(self, listener: str, host: str) -> int:
        """After how long to close that connection, because of its address; 0 if it may come in."""
        return self._rates.refusal_ms(listener, host, self._limits(listener, host), self._now_ms())

    def _limits(self, listener: str, host: str) -> Limits:
        of_broker = int(self._texts(RATE))
        own = self._config.given.get(of_listener(listener, RATE))
        of_address = self._by_address.get(host, self._of_all)
        return Limits(of_broker, of_broker if own is None else int(own), of_address)

    def _look(self) -> None:
        """Read the quotas of addresses, which have changed."""
        self._of_all, self._by_address = UNLIMITED, {}
        for ((kind, name), *_), quotas in self._quotas.by_entity.items():
            if kind == IP and CONNECTION_RATE in quotas:
                self._limit(name, int(quotas[CONNECTION_RATE]))

    def _limit(self, name: str | None, rate: int) -> None:
        """A host name counts as soon as its address is known; one without an address is ignored."""
        by_address = self._by_address
        if name is None:
            self._of_all = rate
        elif (address := address_of(name)) is not None:
            by_address[address] = rate
        else:

            def found(addresses: Sequence[str]) -> None:
                by_address[unmapped(addresses[0])] = rate

            self._resolve(name).addCallbacks(found, lambda failure: failure.trap(OSError) and None)

    def _now_ms(self) -> int:
        return int(self._clock.seconds() * 1000)
