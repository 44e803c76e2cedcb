"""DeleteTopics (20): delete topics and their records, by name or, from v6 on, by topic id (KIP-516)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from uuid import UUID

from kshim.answering.admission import admission
from kshim.answering.views import CoordinatorView
from kshim.callers import RequestContext
from kshim.cluster import ZERO_UUID, Refusal, Topic
from kshim.storage.interfaces import StorageError
from kshim.turns.slices import Slices
from schemas.error_code import ErrorCode
from schemas.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

FIRST_STRICT_VERSION = 5
FIRST_VERSION_WITH_TOPIC_IDS = 6
ENTRY_US = 5
NO_SUCH_NAME = Refusal(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
)
NO_SUCH_ID = Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
STORAGE_ERROR = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "The deletion could not be stored.")


async def delete_topics(
    broker: CoordinatorView, context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    """Delete or refuse each topic independently. A deletion is durable before the answer."""
    if context.api_version < FIRST_VERSION_WITH_TOPIC_IDS:
        wanted = [DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in request.topic_names]
    else:
        wanted = list(request.topics)
    slices = Slices(broker.rounds, context.turn)
    topics, refused = await _sort_out(broker, slices, wanted)

    def forget_offsets(names: Sequence[str]) -> Awaitable[None]:
        """Delete the offsets that groups have committed for deleted topics."""
        return broker.groups.topics_deleted(names, slices.spend)

    admit = admission(context, FIRST_STRICT_VERSION)
    outcome: Mapping[UUID, Refusal | None]
    try:
        outcome = await broker.cluster.delete_topics(topics, admit, pause=slices.spend, forget=forget_offsets)
    except StorageError:
        outcome = {topic.topic_id: STORAGE_ERROR for topic in topics}
    results = [_result(topic.name, topic.topic_id, outcome[topic.topic_id]) for topic in topics]
    return DeleteTopicsResponse(responses=(*results, *refused))


async def _sort_out(
    broker: CoordinatorView, slices: Slices, wanted: list[DeleteTopicState]
) -> tuple[list[Topic], list[DeletableTopicResult]]:
    """Return the topics to delete, and refusals for the other entries."""
    topics: dict[UUID, Topic] = {}
    refused: list[DeletableTopicResult] = []
    by_key = {_key(item): item for item in wanted}
    for key, times in Counter(map(_key, wanted)).items():
        await slices.spend(ENTRY_US)
        name, topic_id = by_key[key].name, by_key[key].topic_id
        topic = broker.cluster.topics.get(name) if name is not None else broker.cluster.topic_by_id(topic_id)
        fault = _fault(name, topic_id)
        if fault is not None:
            refused += [_result(name, topic_id, Refusal(ErrorCode.INVALID_REQUEST, fault))] * times
        elif times > 1:
            message = f"Duplicate topic {'id' if name is None else 'name'}."
            refused.append(_result(name, topic_id, Refusal(ErrorCode.INVALID_REQUEST, message)))
        elif topic is None:
            refused.append(_result(name, topic_id, NO_SUCH_ID if name is None else NO_SUCH_NAME))
        elif topics.pop(topic.topic_id, None) is not None:
            message = "The provided topic name maps to an ID that was already supplied."
            refused.append(_result(topic.name, topic.topic_id, Refusal(ErrorCode.INVALID_REQUEST, message)))
        else:
            topics[topic.topic_id] = topic
    return list(topics.values()), refused


def _key(item: DeleteTopicState) -> tuple[str | None, int]:
    return item.name, item.topic_id.int  # the hash of an id is slow


def _fault(name: str | None, topic_id: UUID) -> str | None:
    """Return why an entry is invalid, or None. It must have either a name or an id."""
    if name is None and topic_id == ZERO_UUID:
        return "Neither topic name nor id were specified."
    if name is not None and topic_id != ZERO_UUID:
        return "You may not specify both topic name and topic id."
    return None


def _result(name: str | None, topic_id: UUID, refusal: Refusal | None) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name,
        topic_id=topic_id,
        error_code=refusal.error_code if refusal else ErrorCode.NONE,
        error_message=refusal.message if refusal else None,
    )
