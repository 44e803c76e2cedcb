"""Divides the partitions of a request about offsets into those that exist and those to refuse.

Each function takes one pass, however many partitions a client names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from kshim.cluster import Topic


class _OfPartition(Protocol):
    @property
    def partition_index(self) -> int: ...


P = TypeVar("P", bound=_OfPartition)
T = TypeVar("T", bound=Any)


def divided(partitions: Iterable[P], topic: Topic | None) -> tuple[tuple[P, ...], tuple[P, ...]]:
    """The partitions that `topic` has, and the others."""
    existing: list[P] = []
    missing: list[P] = []
    for each in partitions:
        exists = topic is not None and topic.partition(each.partition_index) is not None
        (existing if exists else missing).append(each)
    return tuple(existing), tuple(missing)


def merged(topics: Iterable[T]) -> tuple[T, ...]:
    """One entry for each topic of a response, with the partitions of all its entries."""
    found: dict[Any, tuple[T, list[Any]]] = {}
    for topic in topics:
        key = topic.name, getattr(topic, "topic_id", None)
        found.setdefault(key, (topic, []))[1].extend(topic.partitions)
    return tuple(replace(topic, partitions=tuple(partitions)) for topic, partitions in found.values())
