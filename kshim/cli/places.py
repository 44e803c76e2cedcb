"""Places in a topic, as users write them: start, end, an offset, the last records, a time."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

import click

from kshim.cli.durations import duration_ms
from kshim.client.cluster import Cluster, Topic
from kshim.client.faults import ClientError
from kshim.client.offsets import EARLIEST, LATEST, NO_OFFSET, offsets

START: Final = "start"
END: Final = "end"
OFFSET: Final = "offset"
LAST: Final = "last"
TIME: Final = "time"
HELP: Final = (
    "start, end, an offset, -N for the last N records of each partition, a time such as 2026-11-27T08:00 "
    "(UTC), or 10m for ten minutes ago"
)
MOST_NAMED: Final = 5
"""Most partitions that an error names."""


class Place(NamedTuple):
    """kind: START, END, OFFSET, LAST or TIME. value: an offset, a number of records, or ms since 1970."""

    kind: str
    value: int = 0


def place(text: str) -> Place:
    """Parse what a user has written. It is the type of click parameters. Raises UsageError."""
    if text in (START, END):
        return Place(text)
    if re.fullmatch(r"[0-9]{1,19}", text) and int(text) < 2**63:
        return Place(OFFSET, int(text))
    if re.fullmatch(r"-[0-9]{1,19}", text):
        return Place(LAST, -int(text))
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        try:
            return Place(TIME, int(time.time() * 1000) - duration_ms(text))
        except click.UsageError:
            raise click.UsageError(f"{text!r} is no place in a topic; expected {HELP}") from None
    return Place(TIME, int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000))


class Bounds(NamedTuple):
    """Where the records of a topic's partitions begin and end."""

    first: Mapping[int, int]
    end: Mapping[int, int]


def bounds_of(cluster: Cluster, topic: Topic, partitions: Iterable[int], *, committed_only: bool) -> Bounds:
    """Ask for the bounds of partitions. Raises ClientError.

    committed_only: the end is the last stable offset, where no transaction is open.
    """
    some = list(partitions)
    return Bounds(
        offsets(cluster, topic, some, EARLIEST),
        offsets(cluster, topic, some, LATEST, committed_only=committed_only),
    )


def offsets_at(cluster: Cluster, topic: Topic, bounds: Bounds, wanted: Place) -> dict[int, int]:
    """The offset of a place in each partition. Raises ClientError for an offset that no partition has.

    A partition that does not reach as far begins at the nearest record that it has.
    """
    match wanted.kind:
        case "start":
            return dict(bounds.first)
        case "end":
            return dict(bounds.end)
        case "last":
            return {each: max(bounds.first[each], end - wanted.value) for each, end in bounds.end.items()}
        case "time":
            found = offsets(cluster, topic, bounds.end, wanted.value)
            ends = bounds.end
            return {
                each: ends[each] if at == NO_OFFSET else min(at, ends[each]) for each, at in found.items()
            }
    return _at_offset(topic.name, bounds, wanted.value)


def _at_offset(name: str, bounds: Bounds, offset: int) -> dict[int, int]:
    if not any(bounds.first[each] <= offset <= end for each, end in bounds.end.items()):
        some = list(bounds.end.items())[:MOST_NAMED]
        has = ", ".join(f"{name}-{each} has {bounds.first[each]} to {end}" for each, end in some)
        more = f", and there are {len(bounds.end) - len(some)} more" if len(bounds.end) > len(some) else ""
        raise ClientError(f"no offset {offset}: {has}{more}")
    return {each: min(max(bounds.first[each], offset), end) for each, end in bounds.end.items()}
