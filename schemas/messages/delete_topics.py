"""DeleteTopics (20): delete topics by name or by id.

v1 throttle_time_ms; v3 TOPIC_DELETION_DISABLED; v4 flexible; v5 error_message, THROTTLING_QUOTA_EXCEEDED
(KIP-599); v6 topics by name or id (KIP-516). Kafka 4.0 removed v0.
"""

from uuid import UUID

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int16, int32, nullable_string, string, uuid


@entity
class DeleteTopicState:
    name: str | None = field(nullable_string, default=None)
    topic_id: UUID = field(uuid)


@message(api_key=ApiKey.DELETE_TOPICS, versions=range(1, 7), flexible=4)
class DeleteTopicsRequest:
    topics: tuple[DeleteTopicState, ...] = field(array(DeleteTopicState), since=6)
    topic_names: tuple[str, ...] = field(array(string), until=5)
    timeout_ms: int = field(int32)


@entity
class DeletableTopicResult:
    name: str | None = field(string, nullable_since=6)
    topic_id: UUID = field(uuid, since=6)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string, since=5, default=None)


@message(api_key=ApiKey.DELETE_TOPICS, versions=range(1, 7), flexible=4)
class DeleteTopicsResponse:
    throttle_time_ms: int = field(int32)
    responses: tuple[DeletableTopicResult, ...] = field(array(DeletableTopicResult))
