"""The facts that each kshim process sends to the others, and checks that settings do not differ. Pure.

It is JSON with a format number, in a member's subscription and in the assignments.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kshim.configs.endpoint import Endpoint
from kshim.configs.host_pattern import HostPattern

FORMAT = 1
BEFORE_FORMATS = 0
TOPIC = "upstream.groups.topic"
SOMEWHERE = "an unknown address"

Shares = Sequence[tuple["Said", Sequence[int]]]
"""Each kshim process, with the shards that it has to lead."""


@dataclass(frozen=True, slots=True)
class Said:
    """The facts that one kshim process sends about itself."""

    addresses: Mapping[str, Endpoint]
    """Where clients reach it, by listener name."""
    shards: int
    """The number of shards of its topic."""
    settings: Mapping[str, str]
    """Settings that should be the same in all processes, by name."""
    ports: Mapping[int, int] = field(default_factory=dict)
    """How far its port for each upstream broker is from its addresses, by the broker's node id. Builds that
    do not know this say and read none, nor the following.
    """
    silent: Sequence[int] = ()
    """Shards that do not answer it."""
    names: Mapping[str, HostPattern] = field(default_factory=dict)
    """The pattern of the brokers' names, by listener, where all brokers share its port."""
    http: Endpoint | None = None
    """Where its HTTP interface is; None if it has none. Earlier builds neither say nor read this."""

    @property
    def topic(self) -> str:
        """The topic of its groups. Only processes with the same topic share groups."""
        return self.settings.get(TOPIC, "")


class Unlike(Exception):
    """Another build has sent something that cannot be read. str() is a line that says what to do."""

    def __init__(self, said: object) -> None:
        its_format = said.get("format", BEFORE_FORMATS) if isinstance(said, dict) else BEFORE_FORMATS
        super().__init__(
            f"kshim at {_some_address(said) or SOMEWHERE} is another build: what it says of itself has "
            f"format {its_format}, and here it is {FORMAT}; run the same build everywhere"
        )


def encode_said(said: Said) -> bytes:
    """Encode the user data of a member's subscription."""
    return _encode({"format": FORMAT, **_plain(said)})


def decode_said(data: bytes | None) -> Said:
    """Decode the user data of a member's subscription. Raises Unlike."""
    found = _decode(data)
    try:
        return _said(found)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Unlike(found) from None


def encode_shares(shares: Shares) -> bytes:
    """Encode the user data of the assignments."""
    members = [{**_plain(said), "leads": list(leads)} for said, leads in shares]
    return _encode({"format": FORMAT, "members": members})


def decode_shares(data: bytes | None) -> Shares:
    """Decode the user data of an assignment. Raises Unlike."""
    found = _decode(data)
    try:
        return [(_said(each), [int(shard) for shard in each["leads"]]) for each in found["members"]]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Unlike(found) from None


def differences(ours: Said, others: Iterable[Said]) -> Iterator[str]:
    """Yield a line for each setting in which another process differs."""
    for other in others:
        at = next(iter(other.addresses.values()), SOMEWHERE)
        for name in sorted(ours.settings.keys() | other.settings.keys()):
            here, there = ours.settings.get(name, "none"), other.settings.get(name, "none")
            if here != there:
                yield (
                    f"kshim at {at} has {name}={there}, and here it is {here}: "
                    + ("they share no groups" if name == TOPIC else "all should have the same")
                )


def _plain(said: Said) -> dict[str, object]:
    addresses = {name: str(address) for name, address in said.addresses.items()}
    found: dict[str, object] = {
        "addresses": addresses,
        "shards": said.shards,
        "settings": dict(said.settings),
    }
    if said.ports:
        found["ports"] = {str(broker_id): port for broker_id, port in said.ports.items()}
    if said.names:
        found["names"] = {name: pattern.text for name, pattern in said.names.items()}
    if said.silent:
        found["silent"] = list(said.silent)
    if said.http is not None:
        found["http"] = str(said.http)
    return found


def _said(found: Any) -> Said:
    """Read the facts from decoded JSON. Raises ValueError, TypeError, KeyError, AttributeError."""
    return Said(
        {str(name): Endpoint.parse(address) for name, address in found["addresses"].items()},
        int(found["shards"]),
        {str(name): str(value) for name, value in found["settings"].items()},
        {int(broker_id): int(port) for broker_id, port in found.get("ports", {}).items()},
        tuple(int(shard) for shard in found.get("silent", ())),
        {str(name): HostPattern(str(text)) for name, text in found.get("names", {}).items()},
        Endpoint.parse(found["http"]) if "http" in found else None,
    )


def _some_address(found: object) -> str:
    """Return the first address among the texts in `found`; empty if there is none."""
    if isinstance(found, str):
        try:
            return str(Endpoint.parse(found))
        except ValueError:
            return ""
    inside = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    return next(filter(None, map(_some_address, inside)), "")


def _encode(plain: object) -> bytes:
    return json.dumps(plain, separators=(",", ":")).encode()


def _decode(data: bytes | None) -> Any:
    try:
        return json.loads(data or b"null")
    except (ValueError, RecursionError):
        return None
