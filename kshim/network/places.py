"""Limits a broker's connections: in all (max.connections) and from one address (max.connections.per.ip).

As in Kafka, a connection from an address that has too many is closed. One beyond the overall limit is
accepted, but not served before another one goes. The limits are looked up at each connection, as they can be
changed at run time (KIP-402).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from twisted.internet.defer import Deferred

from kshim.configs.per_ip import per_ip
from kshim.network.addresses import unmapped

OVERRIDES = "max.connections.per.ip.overrides"

Resolve = Callable[[str], Deferred[list[str]]]
"""Looks up the addresses of a host name."""


Limits = Callable[[str], str]
"""Returns the current text of a property."""


class Places:
    """The number of one broker's connections from each address."""

    def __init__(self, limits: Limits, resolve: Resolve) -> None:
        self._limits = limits
        self._resolve = resolve
        self._taken: Counter[str] = Counter()
        self._overrides_text = ""
        self._overrides: dict[str, int] = {}  # by address

    @property
    def most(self) -> int:
        """The number of connections that may be served at once."""
        return int(self._limits("max.connections"))

    def take(self, host: str) -> int | None:
        """Count a connection from an address. If the address has too many, count nothing and return its
        limit.
        """
        most = self._most_from(host)
        if self._taken[host] >= most:
            return most
        self._taken[host] += 1
        return None

    def leave(self, host: str) -> None:
        """Note that a connection from an address is gone."""
        self._taken[host] -= 1
        if not self._taken[host]:
            del self._taken[host]

    def _most_from(self, host: str) -> int:
        text = self._limits(OVERRIDES)
        if text != self._overrides_text:
            self._overrides_text, self._overrides = text, {}
            for name, most in per_ip(OVERRIDES, text).items():
                self._override(name, most)
        own = self._overrides.get(host)
        return int(self._limits("max.connections.per.ip")) if own is None else own

    def _override(self, name: str, most: int) -> None:
        """Set an address's limit. A host name counts once its addresses are known; one without is ignored, as
        in Kafka.
        """
        from ipaddress import ip_address

        text, overrides = self._overrides_text, self._overrides

        def found(addresses: Iterable[str]) -> None:
            if text == self._overrides_text:
                overrides.update((unmapped(address), most) for address in addresses)

        try:
            found([str(ip_address(unmapped(name)))])
        except ValueError:
            self._resolve(name).addCallbacks(found, lambda failure: failure.trap(OSError) and None)
