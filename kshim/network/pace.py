"""The rate at which a broker accepts connections: max.connection.creation.rate, and quotas of addresses.

The limits are looked up at each connection, as they can be changed at run time (KIP-612).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshim.cluster.client_quotas import CONNECTION_RATE, IP, address_of
from kshim.configs.listeners import of_listener
from kshim.network.addresses import unmapped
from kshim.network.places import Limits as Texts
from kshim.network.places import Resolve
from kshim.quotas.connections import UNLIMITED, ConnectionRates, Limits
from kshim.quotas.rate import Window

if TYPE_CHECKING:
    from kshim.cluster.client_quotas import Quotas
    from kshim.cluster.settings import QuotaTable
    from kshim.configs.config import Config
    from kshim.storage.clock import Clock

RATE = "max.connection.creation.rate"


class AddressRates:
    """The rates at which addresses may connect (connection_creation_rate). All brokers share them."""

    def __init__(self, quotas: QuotaTable, resolve: Resolve) -> None:
        self._resolve = resolve
        self._of_all = UNLIMITED
        self._by_address: dict[str, int] = {}
        quotas.watch(self._look)

    def of(self, host: str) -> int:
        """Return how many connections a second may come from an address."""
        return self._by_address.get(host, self._of_all)

    def _look(self, changed: Quotas) -> None:
        for ((kind, name), *_), quotas in changed.items():
            if kind == IP:
                self._limit(name, int(quotas.get(CONNECTION_RATE, UNLIMITED)))

    def _limit(self, name: str | None, rate: int) -> None:
        """Set an address's rate. A host name counts once its address is known; one without an address is
        ignored.
        """
        if name is None:
            self._of_all = rate
        elif (address := address_of(name)) is not None:
            self._set(address, rate)
        else:
            found = self._resolve(name)
            found.addCallbacks(
                lambda addresses: self._set(unmapped(addresses[0]), rate),
                lambda failure: failure.trap(OSError) and None,
            )

    def _set(self, address: str, rate: int) -> None:
        if rate < UNLIMITED:
            self._by_address[address] = rate
        else:
            self._by_address.pop(address, None)


class Pace:
    """The connection rates of one broker."""

    def __init__(self, texts: Texts, config: Config, addresses: AddressRates, clock: Clock) -> None:
        """texts: returns the current text of one of the broker's properties."""
        self._texts = texts
        self._config = config
        self._addresses = addresses
        self._clock = clock
        self._rates = ConnectionRates(
            Window(config.quota_window_num, config.quota_window_size_seconds * 1000)
        )

    def delay_ms(self, listener: str) -> int:
        """Return how long the next connection to a listener must wait."""
        return self._rates.delay_ms(listener, self._limits(listener, ""), self._now_ms())

    def refusal_ms(self, listener: str, host: str) -> int:
        """Return after how long to close the connection because of its address; 0 if it may come in."""
        return self._rates.refusal_ms(listener, host, self._limits(listener, host), self._now_ms())

    def _limits(self, listener: str, host: str) -> Limits:
        of_broker = int(self._texts(RATE))
        own = self._config.given.get(of_listener(listener, RATE))
        return Limits(of_broker, of_broker if own is None else int(own), self._addresses.of(host))

    def _now_ms(self) -> int:
        return int(self._clock.seconds() * 1000)
