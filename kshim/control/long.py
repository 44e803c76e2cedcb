"""JSON that may be long. It is made and sent in pieces, so it takes little memory, and others are served."""

from __future__ import annotations

import heapq
import json
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kshim.coordination.groups.rebalance_record import Rebalance
from kshim.recorder.one_line import CONTROLS
from kshim.recorder.shown import shown_in_turn
from kshim.turns.aside import Aside
from kshim.turns.slices import Slices

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

PIECE_BYTES = 16 * 1024
"""Rows of a listing are collected until they have about this size, and then sent."""
RUN = 5_000
"""Names that are sorted in one go."""
RUN_US = 5_000
ITEM_US = 30
LONG_LISTS: Final = ("members", "moved")
"""The fields of a rebalance that may be long lists."""
T = TypeVar("T", bound="SupportsRichComparison")


class Long(NamedTuple):
    """A JSON object with lists that may be long, made and sent in pieces."""

    facts: Mapping[str, object]
    """The object's other fields, which come first."""
    lists: Mapping[str, AsyncIterator[object]]
    """The items of each list, by field name. An item is a JSON value, or another `Long`."""


def encode(value: object) -> bytes:
    """A JSON value as text for terminals: control characters are escaped, other characters are not."""
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    if CONTROLS.search(text):
        text = CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text.encode()


async def pieces(value: Long, *, end_of_row: bytes = b"\n") -> AsyncGenerator[bytes, None]:
    """The object as JSON, in pieces of about PIECE_BYTES."""
    piece = bytearray()
    async for part in _parts(value, end_of_row):
        piece += part
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


async def _parts(value: Long, end_of_row: bytes) -> AsyncIterator[bytes]:
    yield encode(value.facts)[:-1]
    between = b", " if value.facts else b""
    for name, items in value.lists.items():
        yield between + encode(name) + b": ["
        between = end_of_row
        async for item in items:
            yield between
            between = b"," + end_of_row
            if isinstance(item, Long):
                async for part in _parts(item, end_of_row):
                    yield part
            else:
                yield encode(item)
        yield b"]"
        between = b", "
    yield b"}"


async def in_order(slices: Slices, items: Collection[T]) -> Iterable[T]:
    """The items, sorted. Many items are sorted in slices of RUN, which are merged during the iteration."""
    if len(items) <= RUN:
        return sorted(items)
    unsorted = list(items)
    runs = []
    for first in range(0, len(unsorted), RUN):
        await slices.spend(RUN_US)
        runs.append(sorted(unsorted[first : first + RUN]))
    return heapq.merge(*runs)


async def long_rebalances(aside: Aside, slices: Slices, kept: Sequence[Rebalance]) -> AsyncIterator[Long]:
    """The rebalances of a group as JSON, the oldest first. Each is made aside when the last one is sent."""
    in_turn = shown_in_turn(kept)
    while (shown := await aside.run_long(partial(next, in_turn, None))) is not None:
        facts = {name: value for name, value in shown.items() if name not in LONG_LISTS}
        lists = {name: _each(slices, shown[name]) for name in LONG_LISTS}
        yield Long(facts, lists)


async def _each(slices: Slices, items: Sequence[object]) -> AsyncIterator[object]:
    for item in items:
        await slices.spend(ITEM_US)
        yield item
