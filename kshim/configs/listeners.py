"""Listeners as Kafka configures them: the address to listen on, the protocol, and the advertised address.

`listeners_of` makes a ListenerConfig of each item of listeners, with its item of advertised.listeners and
its security protocol from listener.security.protocol.map. HOST:PORT alone is a listener named PLAINTEXT. A
KRaft controller's listeners are left out, because kshim has no such controller.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from itertools import combinations
from typing import NamedTuple

from kshim.configs.endpoint import Endpoint

LAST_PORT = 65535
LISTENER_PREFIX = "listener.name."
"""The prefix of a property that counts for one listener; the listener's name and a dot follow (KIP-103)."""
PLAIN = "PLAINTEXT"
"""The name of a listener that was configured without one."""
_SCHEME = "://"


class SecurityProtocol(StrEnum):
    """The protocols beneath Kafka's at a listener: TLS or not, SASL or not."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def is_tls(self) -> bool:
        return self.endswith("SSL")

    @property
    def is_sasl(self) -> bool:
        return self.startswith("SASL")


PROTOCOL_MAP = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"
"""Kafka's default of listener.security.protocol.map."""


class WrongListener(ValueError):
    """A property of listeners has an unusable value. str() says which values are right."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(why)
        self.name = name
        """The property's name."""


class ListenerConfig(NamedTuple):
    """One listener of the first broker; the ports of further brokers count up from it."""

    name: str
    """The listener's name in capital letters."""
    protocol: SecurityProtocol
    bind: Endpoint
    """The address to listen on. An empty host is every address of this machine; port 0 is any free port."""
    advertised: Endpoint | None = None
    """The address for clients. None stands for `named`, or, if that is None, too, for the address that a
    client connected to. As in Kafka, an empty host is the name of this machine, and port 0 the listener's
    port.
    """

    @property
    def url(self) -> str:
        """The item of `listeners`, such as PLAINTEXT://127.0.0.1:9092."""
        return f"{self.name}://{self.bind}"

    @property
    def named(self) -> Endpoint | None:
        """The address to listen on, if the listener has TLS and its host is a name; else None.

        Clients compare such a name with the certificate.
        """
        return self.bind if self.protocol.is_tls and self.bind.host and not _family(self.bind) else None

    def of_broker(self, number: int) -> ListenerConfig:
        """The listener of the broker `number` places after the first."""
        advertised = self.advertised and _further(self.advertised, number)
        return self._replace(bind=_further(self.bind, number), advertised=advertised)


def _further(endpoint: Endpoint, number: int) -> Endpoint:
    return Endpoint(endpoint.host, endpoint.port + number) if endpoint.port else endpoint


class ListenerTexts(NamedTuple):
    """The texts of the properties that define listeners."""

    listeners: str
    advertised: str = ""
    protocol_map: str = PROTOCOL_MAP
    controllers: str = ""
    brokers: int = 1


def listeners_of(texts: ListenerTexts) -> tuple[ListenerConfig, ...]:
    """The listeners for clients, in the order of `listeners`. Raises WrongListener."""
    protocols = _protocols(texts.protocol_map)
    if _SCHEME not in texts.listeners:
        protocols = {PLAIN: SecurityProtocol.PLAINTEXT}
    controllers = {name.strip().upper() for name in texts.controllers.split(",")}
    items = _items("listeners", texts.listeners)
    _check_ports(items)
    binds = {name: bind for name, bind in items.items() if name not in controllers}
    if not binds:
        raise WrongListener("listeners", "expected a listener for clients, as in PLAINTEXT://127.0.0.1:9092")
    advertised = _advertised(texts.advertised, list(binds), controllers)
    found = tuple(
        ListenerConfig(name, _protocol(name, protocols), bind, advertised.get(name))
        for name, bind in binds.items()
    )
    _check_brokers(found, texts.brokers)
    return found


def of_listener(listener_name: str, name: str) -> str:
    """The name of property `name` for one listener; it wins over `name`, which counts for all listeners."""
    return f"{LISTENER_PREFIX}{listener_name.lower()}.{name}"


def override(properties: Mapping[str, str], listener_name: str, name: str) -> str | None:
    """The text of a property at a listener: listener.name.LISTENER.NAME wins over NAME; None if neither is
    set.
    """
    return properties.get(of_listener(listener_name, name), properties.get(name))


def _protocols(text: str) -> dict[str, SecurityProtocol]:
    """Parse listener.security.protocol.map. Returns protocols by name. Raises WrongListener."""
    found = {}
    for item in text.split(","):
        name, _, protocol = item.partition(":")
        try:
            found[name.strip().upper()] = SecurityProtocol(protocol.strip())
        except ValueError:
            expected = f"expected NAME:PROTOCOL,…, where PROTOCOL is {' or '.join(SecurityProtocol)}"
            raise WrongListener("listener.security.protocol.map", expected) from None
    return found


def _protocol(name: str, protocols: Mapping[str, SecurityProtocol]) -> SecurityProtocol:
    if name not in protocols:
        entry = f"an entry for {name} in listener.security.protocol.map, as in {name}:PLAINTEXT"
        raise WrongListener("listeners", f"expected {entry}")
    return protocols[name]


def _items(property_name: str, text: str) -> dict[str, Endpoint]:
    """Parse a list of listeners. Returns endpoints by name. Raises WrongListener."""
    found: dict[str, Endpoint] = {}
    for item in text.split(","):
        name, scheme, address = item.strip().rpartition(_SCHEME)
        name = name.upper() if scheme else PLAIN
        try:
            endpoint = Endpoint.parse(address)
        except ValueError as error:
            raise WrongListener(property_name, str(error)) from None
        if name in found:
            raise WrongListener(property_name, f"expected each name once, but {name} comes twice")
        found[name] = endpoint
    return found


def _advertised(text: str, names: Sequence[str], controllers: Collection[str]) -> dict[str, Endpoint]:
    """Parse advertised.listeners. Returns endpoints by listener; one that is not advertised is missing.

    names, controllers: the listeners for clients, and for controllers. Raises WrongListener.
    """
    if not text:
        return {}
    if _SCHEME not in text and len(names) > 1:
        why = f"expected the listener of each address, as in {names[0]}{_SCHEME}{text.partition(',')[0]}"
        raise WrongListener("advertised.listeners", why)
    items = _items("advertised.listeners", text)
    if _SCHEME not in text:
        items = {names[0]: items[PLAIN]}
    for name, endpoint in items.items():
        if name not in names and name not in controllers:
            known = ", ".join(names)
            why = f"expected names that listeners has, which are {known}; {name} is not among them"
            raise WrongListener("advertised.listeners", why)
        if endpoint.host and endpoint.is_nowhere:
            why = f"expected an address that clients can connect to, but {endpoint.host} is every address"
            raise WrongListener("advertised.listeners", why)
    return {name: endpoint for name, endpoint in items.items() if name in names}


def _check_ports(items: Mapping[str, Endpoint]) -> None:
    """Check that no two listeners share a port, unless one has an IPv4 and the other an IPv6 address.

    Raises WrongListener.
    """
    for (name, bind), (other, beside) in combinations(items.items(), 2):
        if bind.port == beside.port != 0 and {_family(bind), _family(beside)} != {4, 6}:
            why = f"expected different ports, but {name} and {other} both have {bind.port}"
            raise WrongListener("listeners", why)


def _family(endpoint: Endpoint) -> int:
    """The version of an IP address, 4 or 6; 0 for a host name or an empty host."""
    from ipaddress import ip_address

    try:
        return ip_address(endpoint.host).version
    except ValueError:
        return 0


def _check_brokers(found: Sequence[ListenerConfig], brokers: int) -> None:
    """Check that the ports of all brokers exist, and that no listener needs a port of another. Raises
    WrongListener.
    """
    for listener in found:
        for name, endpoint in (("listeners", listener.bind), ("advertised.listeners", listener.advertised)):
            if endpoint is not None and endpoint.port + brokers - 1 > LAST_PORT:
                why = f"expected ports for {brokers} brokers from {endpoint.port} on; the last is {LAST_PORT}"
                raise WrongListener(name, why)
    for listener, other in combinations(sorted(found, key=lambda each: each.bind.port), 2):
        first, next_ = listener.bind.port, other.bind.port
        if 0 < first < next_ < first + brokers:
            why = f"expected {brokers} ports for each listener, one a broker, but {listener.name} begins with"
            raise WrongListener("listeners", f"{why} {first}, and {other.name} with {next_}")
