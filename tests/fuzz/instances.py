"""A value of any message, from a `Random`: the same seed makes the same value with every Python."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

from schemas import primitives
from schemas.message import struct

TEXTS = ("", "t", "orders", "ü" * 3, "\N{GRINNING FACE}", "x" * 127, "ö" * 80)
DATA = (b"", b"\0", b"data", b"\xff" * 126, bytes(300))
MOST_ITEMS = 2


def instance(cls: Any, version: int, chance: Random) -> Any:
    """A value of a message class, with everything that this version can carry."""
    return _value(struct(cls, version), chance)


def _value(wire: Any, chance: Random) -> Any:
    if getattr(wire, "is_nullable", False) and chance.random() < 0.2:
        return None
    return _MAKERS[type(wire)](wire, chance)


def _number(wire: Any, chance: Random) -> Any:
    if wire.code == "?":
        return chance.random() < 0.5
    if wire.code == "d":
        return chance.uniform(-1e9, 1e9)
    bits = wire.length * 8
    low = -(1 << bits - 1) if wire.code.islower() else 0
    return _near_or_far(low, low + (1 << bits) - 1, chance)


def _varint(wire: Any, chance: Random) -> int:
    low = -(1 << wire.bits - 1) if wire.signed else 0
    return _near_or_far(low, low + (1 << wire.bits) - 1, chance)


def _near_or_far(low: int, high: int, chance: Random) -> int:
    return chance.choice((0, 1, max(low, -1), low, high, chance.randint(low, high)))


def _nullable(wire: Any, chance: Random) -> Any:
    return None if chance.random() < 0.3 else _value(wire.element, chance)


def _array(wire: Any, chance: Random) -> tuple[Any, ...]:
    return tuple(_value(wire.element, chance) for _ in range(chance.randint(0, MOST_ITEMS)))


def _entity(wire: Any, chance: Random) -> Any:
    values = {name: _value(each, chance) for name, each in wire.fields}
    if wire.tagged:
        for name, each, default in wire.tagged.known.values():
            values[name] = default if chance.random() < 0.3 else _value(each, chance)
        first = max({*wire.tagged.known, *wire.tagged.of_others}, default=-1) + 1
        if chance.random() < 0.3:
            values["unknown_tags"] = ((first, chance.choice(DATA)), (first + 200, b"later"))
    return wire.entity(**values)


_MAKERS: dict[type, Callable[[Any, Random], Any]] = {
    primitives.Fixed: _number,
    primitives.Varint: _varint,
    primitives.Uuid: lambda _, chance: UUID(int=chance.choice((0, chance.getrandbits(128)))),
    primitives.String: lambda _, chance: chance.choice(TEXTS),
    primitives.Bytes: lambda _, chance: chance.choice(DATA),
    primitives.Records: lambda _, chance: memoryview(chance.choice(DATA)),
    primitives.Array: _array,
    primitives.Nullable: _nullable,
    primitives.Entity: _entity,
}
