"""Client quotas: Kafka's refusals of new ones, changes, and filters (KIP-546, KIP-612).

Pure. A quota belongs to an entity: a user, a client id, both, or an address. The name None stands for the
default of a type. `kshim.quotas` enforces the quotas of users and clients, and kshim/network/arrivals.py
those of addresses, which limit connections.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from kshim.cluster.checks import Refusal
from schemas.error_code import ErrorCode

USER, CLIENT_ID, IP = "user", "client-id", "ip"
ENTITY_TYPES: Final = (CLIENT_ID, USER, IP)
PRODUCER_RATE: Final = "producer_byte_rate"
CONSUMER_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_RATE: Final = "connection_creation_rate"

Entity = tuple[tuple[str, str | None], ...]
"""(type, name), in the order of ENTITY_TYPES."""
Quotas = dict[Entity, dict[str, float]]

_LONG, _INT, _DOUBLE = (2.0**63, "a LONG"), (2.0**31 - 1, "an INT"), (math.inf, "a DOUBLE")
_RATES = {
    PRODUCER_RATE: _LONG,
    CONSUMER_RATE: _LONG,
    REQUEST_PERCENTAGE: _DOUBLE,
    MUTATION_RATE: _DOUBLE,
}
_CONNECTION_RATE = {CONNECTION_RATE: _INT}
_SMALLEST_FRACTION = 1e-6

_IPV4 = re.compile(r"(?:[0-9]{1,15}\.){0,3}[0-9]{1,15}", re.ASCII)
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}\.)*(?![0-9]+$){_LABEL}", re.ASCII)
_LONGEST_HOST = 253


class QuotaChange(NamedTuple):
    """New quotas of an entity. The value None removes a quota."""

    entity: Entity
    quotas: Mapping[str, float | None]


class MatchType(IntEnum):
    """The kinds of conditions for the name of an entity: this name, the default, or any name."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


class Component(NamedTuple):
    """One condition of a filter. A filter finds the entities that meet all its conditions."""

    entity_type: str
    match_type: MatchType
    match: str | None


def new_entity(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """An entity with its types in the order of ENTITY_TYPES, unknown types last.

    If a type comes twice, its last name counts.
    """
    order = {kind: place for place, kind in enumerate(ENTITY_TYPES)}
    return tuple(sorted(dict(parts).items(), key=lambda part: (order.get(part[0], len(order)), part[0])))


def entity_text(entity: Entity) -> str:
    """An entity as Kafka prints it."""
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"


def refuse_quotas(change: QuotaChange) -> Refusal | None:
    """The refusal of a change; None if it can be made. The names of removed quotas are not checked."""
    fault = _fault_in_entity(change.entity) or next(
        filter(None, (_fault_in_quota(change.entity, *each) for each in change.quotas.items())), None
    )
    return None if fault is None else Refusal(ErrorCode.INVALID_REQUEST, fault)


def _fault_in_entity(entity: Entity) -> str | None:
    if not entity:
        return "Invalid empty client quota entity"
    for kind, name in entity:
        if kind not in ENTITY_TYPES:
            return f"Unhandled client quota entity type: {kind}"
        if name == "":
            return f"Empty {kind} not supported"
    names = dict(entity)
    if IP in names and len(names) > 1:
        return "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
    address = names.get(IP)
    if address is not None and not is_host(address):
        return f"{address} is not a valid IP or resolvable host."
    return None


def _fault_in_quota(entity: Entity, key: str, value: float | None) -> str | None:
    if value is None:
        return None
    keys = _CONNECTION_RATE if entity[0][0] == IP else _RATES
    if key not in keys:
        return f"Invalid configuration key {key}"
    if not math.isfinite(value):
        return f"Quota {key} must be a finite number"
    if value <= 0:
        return f"Quota {key} must be greater than 0"
    most, kind = keys[key]
    if value > most:
        return f"Proposed value for {key} is too large for {kind}."
    is_whole = math.isinf(most) or value - math.trunc(value) <= _SMALLEST_FRACTION
    return None if is_whole else f"{key} cannot be a fractional value."


def address_of(text: str) -> str | None:
    """The IP address that Java reads from a text; None for a host name, which Java would have to look up."""
    if _IPV4.fullmatch(text) and _is_ipv4(text):
        *first, last = map(int, text.split("."))
        number = sum(part << (24 - 8 * place) for place, part in enumerate(first)) + last
        return str(ipaddress.IPv4Address(number))
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    if not _is_ipv6(text):
        return None
    address = ipaddress.IPv6Address(text.partition("%")[0])
    return str(address.ipv4_mapped or address)


def is_host(text: str) -> bool:
    """True if the text is an IP address as Java reads it, or a valid host name, which is not looked up."""
    if _IPV4.fullmatch(text):
        return _is_ipv4(text)
    if text.startswith("[") and text.endswith("]"):
        return _is_ipv6(text[1:-1])
    return _is_ipv6(text) or (len(text) <= _LONGEST_HOST and bool(_HOST.fullmatch(text)))


def _is_ipv4(text: str) -> bool:
    """True if the one to four numbers of an IPv4 address are in range. The last number fills all bytes that
    are left. text: matches _IPV4.
    """
    *first, last = map(int, text.split("."))
    return all(number < 256 for number in first) and last < 256 ** (4 - len(first))


def _is_ipv6(text: str) -> bool:
    address, percent, scope = text.partition("%")
    if percent and not (scope.isascii() and scope.isdecimal()):
        return False
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return False
    return True


def changed(change: QuotaChange, before: Mapping[str, float]) -> dict[str, float]:
    """The quotas of an entity after a change."""
    after = {**before, **change.quotas}
    return {key: value for key, value in after.items() if value is not None}


def meets(entity: Entity, components: Sequence[Component], *, strict: bool) -> bool:
    """True if a filter finds an entity. strict: the entity must not have further types."""
    names = dict(entity)
    if strict and len(names) != len(components):
        return False
    return all(each.entity_type in names and _matches(each, names[each.entity_type]) for each in components)


def _matches(component: Component, name: str | None) -> bool:
    return component.match_type is MatchType.SPECIFIED or component.match == name


# ---- stored


def stored_key(entity: Entity) -> bytes:
    """A key of fixed length for an entity, whose names may be long."""
    from hashlib import sha256

    return sha256(json.dumps(entity).encode()).hexdigest().encode()


def encode_quotas(entity: Entity, quotas: Mapping[str, float]) -> bytes | None:
    """The stored value of an entity and its quotas; None, which deletes the key, if it has no quotas."""
    return json.dumps([entity, quotas]).encode() if quotas else None


def decode_quotas(stored: bytes) -> tuple[Entity, dict[str, float]]:
    entity, quotas = json.loads(stored)
    return tuple((kind, name) for kind, name in entity), quotas
