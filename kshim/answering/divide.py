"""Divides the partitions of a request about offsets: into those that exist and those to refuse, and into
pieces between which other requests are answered.

Each function takes one pass, however many partitions a client names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias, TypeVar
from uuid import UUID

from kshim.answering.views import AnyView
from kshim.callers import RequestContext
from kshim.cluster import KnownCluster, Topic
from kshim.turns.slices import SLICE_US, Slices
from schemas.error_code import ErrorCode
from schemas.message import Structure

PARTITIONS_AT_ONCE = 500


class NamedPartition(Protocol):
    @property
    def partition_index(self) -> int: ...


class _OfTopic(Structure, Protocol):
    @property
    def name(self) -> str: ...
    @property
    def partitions(self) -> Sequence[object]: ...


class _OfTopics(Structure, Protocol):
    @property
    def topics(self) -> Sequence[_OfTopic]: ...


class _Commit(_OfTopic, Protocol):
    """A topic of a request that commits offsets."""

    @property
    def topic_id(self) -> UUID: ...
    @property
    def partitions(self) -> Sequence[NamedPartition]: ...


P = TypeVar("P", bound=NamedPartition)
C = TypeVar("C", bound=_Commit)
Refused = TypeVar("Refused")
T = TypeVar("T", bound=_OfTopic)
R = TypeVar("R", bound=_OfTopics)
A = TypeVar("A", bound=_OfTopics)
B = TypeVar("B", bound=AnyView)
Found: TypeAlias = dict[object, tuple[T, list[object]]]
"""By name and id: the first entry of a topic, and the partitions of all its entries."""


def divided(partitions: Iterable[P], topic: Topic | None) -> tuple[tuple[P, ...], tuple[P, ...]]:
    """The partitions that `topic` has, and the others."""
    existing: list[P] = []
    missing: list[P] = []
    for each in partitions:
        exists = topic is not None and topic.partition(each.partition_index) is not None
        (existing if exists else missing).append(each)
    return tuple(existing), tuple(missing)


def sorted_out(
    cluster: KnownCluster,
    named: Iterable[C],
    by_id: bool,
    refused: Callable[[C, Sequence[NamedPartition], ErrorCode], Refused],
) -> tuple[tuple[C, ...], list[Refused]]:
    """The topics of a commit with the partitions that exist, and the refusals of the others.

    by_id: True if the request names topics by id; the returned topics have their names. refused: makes the
    refusal of some partitions of a topic.
    """
    known: list[C] = []
    refusals: list[Refused] = []
    for each in named:
        topic = cluster.topic_by_id(each.topic_id) if by_id else cluster.topics.get(each.name)
        if topic is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refusals.append(refused(each, each.partitions, unknown))
            continue
        found = replace(each, name=topic.name) if by_id else each
        existing, missing = divided(each.partitions, topic)
        if missing:
            refusals.append(refused(found, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if existing:
            known.append(replace(found, partitions=existing) if missing else found)
    return tuple(known), refusals


def merged(topics: Iterable[T]) -> tuple[T, ...]:
    """One entry for each topic of a response, with the partitions of all its entries."""
    found: Found[T] = {}
    _merge(found, topics)
    return _merged(found)


def _merge(found: Found[T], topics: Iterable[T]) -> None:
    for topic in topics:
        key = topic.name, getattr(topic, "topic_id", None)
        found.setdefault(key, (topic, []))[1].extend(topic.partitions)


def _merged(found: Found[T]) -> tuple[T, ...]:
    return tuple(replace(topic, partitions=tuple(partitions)) for topic, partitions in found.values())


async def answer_in_pieces(
    broker: B,
    context: RequestContext,
    request: R,
    answer: Callable[[B, RequestContext, R], Awaitable[A]],
) -> A:
    """`answer(...)`; or, if many partitions are named, the answers for as many pieces as it takes, as one."""
    left = PARTITIONS_AT_ONCE
    for topic in request.topics:
        left -= len(topic.partitions) + 1
    if left >= 0:
        return await answer(broker, context, request)
    context.turn.is_alone = True
    return await _in_pieces(broker, context, request, answer)


async def _in_pieces(
    broker: B,
    context: RequestContext,
    request: R,
    answer: Callable[[B, RequestContext, R], Awaitable[A]],
) -> A:
    slices = Slices(broker.rounds, context.turn)
    found: Found[_OfTopic] = {}
    for some in _pieces(request.topics):
        await slices.spend(SLICE_US)
        response = await answer(broker, context, replace(request, topics=some))
        if getattr(response, "error_code", ErrorCode.NONE):
            return response
        _merge(found, response.topics)
    return replace(response, topics=_merged(found))


def _pieces(topics: Iterable[_OfTopic]) -> Iterator[tuple[object, ...]]:
    """The topics, and parts of them, in pieces of PARTITIONS_AT_ONCE; a topic counts as one more."""
    piece: list[object] = []
    left = PARTITIONS_AT_ONCE
    for topic in topics:
        partitions = topic.partitions
        while len(partitions) + 1 > left:
            if left > 1:
                piece.append(replace(topic, partitions=partitions[: left - 1]))
                partitions = partitions[left - 1 :]
            yield tuple(piece)
            piece, left = [], PARTITIONS_AT_ONCE
        piece.append(topic if partitions is topic.partitions else replace(topic, partitions=partitions))
        left -= len(partitions) + 1
    yield tuple(piece)
