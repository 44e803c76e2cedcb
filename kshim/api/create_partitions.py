"""CreatePartitions (37): give topics more partitions (KIP-195)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kshim.answering.admission import Admit, admission
from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster import Refusal
from kshim.turns.later import Later, gather, if_not_stored, then
from kshim.turns.slices import in_pieces
from schemas.error_code import ErrorCode
from schemas.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

FIRST_STRICT_VERSION = 3
TOPICS_AT_ONCE = 100
TWICE = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
STORAGE_ERROR = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "The partitions could not be stored.")


def create_partitions(
    broker: ClusterView, context: RequestContext, request: CreatePartitionsRequest
) -> Later[CreatePartitionsResponse]:
    """Extend each topic independently. New partitions are durable, and in Metadata, before the answer."""
    count = Counter(topic.name for topic in request.topics)
    twice = [_result(name, TWICE) for name, times in count.items() if times > 1]
    admit = admission(context, FIRST_STRICT_VERSION)
    others = [topic for topic in request.topics if count[topic.name] == 1]

    def add(topics: Sequence[CreatePartitionsTopic]) -> Later[Iterable[CreatePartitionsTopicResult]]:
        return gather([_add(broker, topic, request.validate_only, admit) for topic in topics], list)

    added = in_pieces(broker.rounds, context.turn, others, add, TOPICS_AT_ONCE)
    return then(added, lambda results: CreatePartitionsResponse(results=(*twice, *results)))


def _add(
    broker: ClusterView, topic: CreatePartitionsTopic, validate_only: bool, admit: Admit
) -> Deferred[CreatePartitionsTopicResult]:
    assignments = None if topic.assignments is None else [item.broker_ids for item in topic.assignments]
    added = broker.cluster.add_partitions(
        topic.name, topic.count, assignments, validate_only=validate_only, admit=admit
    )

    def result(refusal: Refusal | None) -> CreatePartitionsTopicResult:
        return _result(topic.name, refusal)

    return added.addCallbacks(result, if_not_stored(partial(_result, topic.name, STORAGE_ERROR)))


def _result(name: str, refusal: Refusal | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name,
        error_code=refusal.error_code if refusal else ErrorCode.NONE,
        error_message=refusal.message if refusal else None,
    )
