"""What Apache Kafka's answer to a batch means for a process that leads a shard or wants to."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from schemas.error_code import ErrorCode


class Meaning(Enum):
    """The result of sending a batch."""

    APPENDED = auto()
    """The batch is in the log, now or since an earlier attempt, and all in-sync replicas have it."""
    AGAIN = auto()
    """The batch may or may not be in the log; the same batch may be sent again."""
    OVERTAKEN = auto()
    """The batch is not confirmed: another process has begun this term or a later one."""
    REFUSED = auto()
    """The batch is not in the log and will not be: a setting of the upstream forbids it, or a missing
    permission.
    """


_AGAIN = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # also the answer of a broker that does not know the topic yet
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)
SHORT_OF = frozenset(
    {
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)
"""The upstream lacks disks or replicas, which may last until somebody repairs it."""
_OVERTAKEN = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)


class Answer(NamedTuple):
    """The answer to a batch."""

    error_code: ErrorCode
    base_offset: int = -1

    @property
    def meaning(self) -> Meaning:
        if self.error_code is ErrorCode.NONE:
            return Meaning.APPENDED
        if self.error_code in _OVERTAKEN:
            return Meaning.OVERTAKEN
        return Meaning.AGAIN if self.error_code in _AGAIN else Meaning.REFUSED


NO_ANSWER = Answer(ErrorCode.NETWORK_EXCEPTION)
"""The connection was lost, or no answer came in time."""


def name_of(code: int) -> str:
    """Return Kafka's name of an error, or its number if kshim does not know it."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
