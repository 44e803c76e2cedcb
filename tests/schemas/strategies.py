"""Any value of any message, for property tests.

`messages(cls, version)` makes instances with random values in the fields that exist in that version, and the
default in all others, so that encoding and decoding must give an equal instance.
"""

import importlib
import pkgutil
from functools import cache
from typing import Any

from hypothesis import strategies as st

import schemas
from schemas import primitives
from schemas.message import definition, struct


def message_versions() -> list[tuple[Any, int]]:
    """Every message class with each of its versions, with an API key or without one."""
    found = set()
    for module in pkgutil.walk_packages(schemas.__path__, "schemas."):
        names = vars(importlib.import_module(module.name)).values()
        found |= {it for it in names if hasattr(it, "__definition__") and definition(it).versions is not None}
    classes = sorted(found, key=lambda it: it.__name__)
    return [(cls, version) for cls in classes for version in definition(cls).versions or ()]


def version_name(pair: tuple[Any, int]) -> str:
    """A (class, version) as part of a test's name."""
    return f"{pair[0].__name__}-v{pair[1]}"


@cache  # making the strategy takes longer than drawing from it
def messages(cls: Any, version: int) -> st.SearchStrategy[Any]:
    """Instances of a message class that this version can carry whole."""
    return values(struct(cls, version))


def values(wire: Any) -> st.SearchStrategy[Any]:
    """Values that a wire type, as it is in one version, can carry."""
    made = {
        primitives.Fixed: _numbers,
        primitives.Varint: _varints,
        primitives.Uuid: lambda _: st.uuids(),
        primitives.String: lambda _: TEXT,
        primitives.Bytes: lambda _: DATA,
        primitives.Records: lambda _: DATA.map(memoryview),
        primitives.Array: _arrays,
        primitives.Nullable: lambda it: st.none() | values(it.element),
        primitives.Entity: _entities,
    }[type(wire)](wire)
    return made | st.none() if getattr(wire, "is_nullable", False) else made


# Some are so long that their length takes two bytes as a varint.
TEXT = st.text(max_size=8) | st.sampled_from(["ü" * 80, "x" * 127])
DATA = st.binary(max_size=8) | st.sampled_from([b"\xff" * 126, b"\0" * 300])


def _numbers(wire: primitives.Fixed) -> st.SearchStrategy[Any]:
    if wire.code == "?":
        return st.booleans()
    if wire.code == "d":
        return st.floats(allow_nan=False)
    bits = wire.length * 8
    low = -(1 << bits - 1) if wire.code.islower() else 0
    return st.integers(low, low + (1 << bits) - 1)


def _varints(wire: primitives.Varint) -> st.SearchStrategy[int]:
    low = -(1 << wire.bits - 1) if wire.signed else 0
    return st.integers(low, low + (1 << wire.bits) - 1)


def _arrays(wire: primitives.Array) -> st.SearchStrategy[Any]:
    return st.lists(values(wire.element), max_size=3).map(tuple)


def _entities(wire: primitives.Entity) -> st.SearchStrategy[Any]:
    fields = {name: values(each) for name, each in wire.fields}
    if wire.tagged:
        known = wire.tagged.known
        fields |= {name: st.just(default) | values(each) for name, each, default in known.values()}
        taken = {*known, *wire.tagged.of_others}
        tags = st.integers(max(taken, default=-1) + 1, 2**32 - 1)
        unknown = st.dictionaries(tags, DATA, max_size=2).map(lambda it: tuple(sorted(it.items())))
        fields["unknown_tags"] = st.just(()) | unknown
    return st.builds(wire.entity, **fields)
