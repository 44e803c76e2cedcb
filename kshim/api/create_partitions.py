"""CreatePartitions (37): give topics more partitions (KIP-195)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kshim.answering.admission import Admit, admission
from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster import Refusal
from kshim.storage.interfaces import StorageError
from kshim.turns.promise import together
from kshim.turns.slices import in_pieces
from schemas.error_code import ErrorCode
from schemas.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

FIRST_STRICT_VERSION = 3
TOPICS_AT_ONCE = 100
TWICE = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
STORAGE_ERROR = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "The partitions could not be stored.")


async def create_partitions(
    broker: ClusterView, context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Extend each topic independently. New partitions are durable, and in Metadata, before the answer."""
    count = Counter(topic.name for topic in request.topics)
    twice = [_result(name, TWICE) for name, times in count.items() if times > 1]
    admit = admission(context, FIRST_STRICT_VERSION)
    others = [topic for topic in request.topics if count[topic.name] == 1]

    async def add(topics: Sequence[CreatePartitionsTopic]) -> Iterable[CreatePartitionsTopicResult]:
        return await together(_add(broker, topic, request.validate_only, admit) for topic in topics)

    results = await in_pieces(broker.rounds, context.turn, others, add, TOPICS_AT_ONCE)
    return CreatePartitionsResponse(results=(*twice, *results))


async def _add(
    broker: ClusterView, topic: CreatePartitionsTopic, validate_only: bool, admit: Admit
) -> CreatePartitionsTopicResult:
    assignments = None if topic.assignments is None else [item.broker_ids for item in topic.assignments]
    refusal: Refusal | None
    try:
        refusal = await broker.cluster.add_partitions(
            topic.name, topic.count, assignments, validate_only=validate_only, admit=admit
        )
    except StorageError:
        refusal = STORAGE_ERROR
    return _result(topic.name, refusal)


def _result(name: str, refusal: Refusal | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name,
        error_code=refusal.error_code if refusal else ErrorCode.NONE,
        error_message=refusal.message if refusal else None,
    )
