"""The faults that are tried, and what the application around each client then sees.

A fault strikes a consumer that is at work ("poll"), one that commits ("commit"), or one that has just begun
("open"). What is expected stands in the words of `Seen.said`; all clients go on consuming unless it says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from integration.clients.faults.watching import JOINS_AGAIN, STOPS, SUCCEEDS, fails, gets

KAFKA_PYTHON, LIBRDKAFKA, JAVA = "kafka-python", "confluent-kafka", "kafka-clients-4.2"
CLIENTS: Final = (KAFKA_PYTHON, LIBRDKAFKA, JAVA)
Said = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row of the table."""

    when: str
    """poll, commit or open."""
    api: str
    fault: Mapping[str, Any]
    words: str
    """The fault as the table has it."""
    expected: Said | Mapping[str, Said] = ()
    """What each client says, if they differ."""
    late_s: float = 4.0
    """No record may be later; a busy machine takes its time."""
    either_way: Said = ()
    """What may be said or not, by chance."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the consumer."""
    is_one_of_few: bool = False
    """Whether it is tried in every test run."""

    @property
    def name(self) -> str:
        return f"{self.api}: {self.words}"

    def said_by(self, client: str) -> set[str]:
        expected = self.expected
        return set(expected if isinstance(expected, tuple) else expected[client])


def each(kafka_python: Said, librdkafka: Said, java: Said) -> Mapping[str, Said]:
    return dict(zip(CLIENTS, (kafka_python, librdkafka, java), strict=True))


def error(when: str, api: str, name: str, times: int = 1, **more: Any) -> Case:
    words = f"{name}{', twice' if times == 2 else ''}"
    return Case(when=when, api=api, fault={"error": name, "times": times}, words=words, **more)


def other(when: str, api: str, words: str, fault: Mapping[str, Any], **more: Any) -> Case:
    return Case(when=when, api=api, fault={"times": 1, **fault}, words=words, **more)


JOINS: Said = (JOINS_AGAIN,)
SESSION_S = 12.0
"""The member that the broker still has keeps the new one waiting until its session ends."""

CASES: Final = (
    error("poll", "Heartbeat", "NOT_COORDINATOR", 2, is_one_of_few=True),
    error("poll", "Heartbeat", "REBALANCE_IN_PROGRESS", expected=JOINS),
    error("poll", "Heartbeat", "ILLEGAL_GENERATION", expected=JOINS),
    error("poll", "Heartbeat", "UNKNOWN_MEMBER_ID", expected=JOINS, late_s=SESSION_S),
    error(
        "poll",
        "Heartbeat",
        "FENCED_INSTANCE_ID",
        options={"instance": "i"},
        expected=each((), (STOPS, gets("FATAL")), (JOINS_AGAIN, gets("FencedInstanceIdException"))),
    ),
    error("poll", "Heartbeat", "GROUP_AUTHORIZATION_FAILED"),
    other("poll", "Heartbeat", "no answer", {"drop": True}),
    other("poll", "Heartbeat", "connection closed", {"close": "before"}),
    other("poll", "Heartbeat", "connection stalled for 6 s", {"stall_ms": 6000}),
    error("poll", "Fetch", "OFFSET_OUT_OF_RANGE", is_one_of_few=True),
    error("poll", "Fetch", "NOT_LEADER_OR_FOLLOWER", 2),
    error("poll", "Fetch", "UNKNOWN_TOPIC_OR_PARTITION", 2),
    error("poll", "Fetch", "KAFKA_STORAGE_ERROR", 2),
    error(
        "poll",
        "Fetch",
        "TOPIC_AUTHORIZATION_FAILED",
        expected=each(
            (gets("TopicAuthorizationFailedError"),),
            (gets("TOPIC_AUTHORIZATION_FAILED"),),
            (gets("TopicAuthorizationException"),),
        ),
        late_s=10.0,
    ),
    error(
        "poll",
        "Fetch",
        "CORRUPT_MESSAGE",
        expected=each((gets("CorruptRecordError"),), (gets("INVALID_MSG"),), (gets("KafkaException"),)),
    ),
    other(
        "poll",
        "Fetch",
        "answered 1 s late, for 3 s",
        {"delay_ms": 1000, "times": None, "for_ms": 3000},
        late_s=6.0,
    ),
    other(
        "poll",
        "Fetch",
        "1000 bytes/s, for 3 s",
        {"bytes_per_s": 1000, "times": None, "for_ms": 3000},
        late_s=8.0,
    ),
    other("poll", "Fetch", "no answer", {"drop": True}, late_s=8.0, is_one_of_few=True),
    # With one broker, the Java client begins again with its bootstrap servers, and forgets the topics.
    other("poll", "Fetch", "connection closed", {"close": "before"}, either_way=JOINS),
    other("poll", "Fetch", "connection stalled for 1 s", {"stall_ms": 1000}),
    error("commit", "OffsetCommit", "NOT_COORDINATOR", 2, expected=(SUCCEEDS,), is_one_of_few=True),
    error("commit", "OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", 2, expected=(SUCCEEDS,)),
    error(
        "commit",
        "OffsetCommit",
        "REBALANCE_IN_PROGRESS",
        expected=each(
            (JOINS_AGAIN, fails("CommitFailedError")),
            (fails("REBALANCE_IN_PROGRESS"),),
            (JOINS_AGAIN, fails("RebalanceInProgressException")),
        ),
    ),
    error(
        "commit",
        "OffsetCommit",
        "ILLEGAL_GENERATION",
        expected=each(
            (JOINS_AGAIN, fails("CommitFailedError")),
            (JOINS_AGAIN, fails("ILLEGAL_GENERATION")),
            (JOINS_AGAIN, fails("CommitFailedException")),
        ),
        is_one_of_few=True,
    ),
    error(
        "commit",
        "OffsetCommit",
        "UNKNOWN_MEMBER_ID",
        expected=each(
            (JOINS_AGAIN, fails("CommitFailedError")),
            (JOINS_AGAIN, fails("UNKNOWN_MEMBER_ID")),
            (JOINS_AGAIN, fails("CommitFailedException")),
        ),
        late_s=SESSION_S,
    ),
    error(
        "commit",
        "OffsetCommit",
        "OFFSET_METADATA_TOO_LARGE",
        expected=each(
            (fails("OffsetMetadataTooLargeError"),),
            (fails("OFFSET_METADATA_TOO_LARGE"),),
            (fails("OffsetMetadataTooLarge"),),
        ),
    ),
    other("commit", "OffsetCommit", "answered 1 s late", {"delay_ms": 1000}, expected=(SUCCEEDS,)),
    other(
        "commit",
        "OffsetCommit",
        "no answer",
        {"drop": True},
        expected=each((fails("KafkaTimeoutError"),), (SUCCEEDS,), (SUCCEEDS,)),
        late_s=8.0,
    ),
    other("commit", "OffsetCommit", "connection closed", {"close": "before"}, expected=(SUCCEEDS,)),
    other(
        "commit",
        "OffsetCommit",
        "performed, then connection closed",
        {"close": "after"},
        expected=(SUCCEEDS,),
        is_one_of_few=True,
    ),
    error("open", "FindCoordinator", "COORDINATOR_NOT_AVAILABLE", 2),
    error("open", "JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS", 2),
    error(
        "open",
        "JoinGroup",
        "GROUP_MAX_SIZE_REACHED",
        expected=each(
            (gets("GroupMaxSizeReachedError"),),
            (gets("GROUP_MAX_SIZE_REACHED"),),
            (gets("GroupMaxSizeReachedException"),),
        ),
    ),
    error(
        "open",
        "JoinGroup",
        "INCONSISTENT_GROUP_PROTOCOL",
        expected=each(
            (gets("InconsistentGroupProtocolError"),),
            (gets("INCONSISTENT_GROUP_PROTOCOL"),),
            (gets("InconsistentGroupProtocolException"),),
        ),
    ),
    error(
        "open",
        "JoinGroup",
        "GROUP_AUTHORIZATION_FAILED",
        expected=each(
            (gets("GroupAuthorizationFailedError"),),
            (gets("GROUP_AUTHORIZATION_FAILED"),),
            (gets("GroupAuthorizationException"),),
        ),
        is_one_of_few=True,
    ),
    other("open", "JoinGroup", "performed, then connection closed", {"close": "after"}, late_s=SESSION_S),
    error("open", "SyncGroup", "REBALANCE_IN_PROGRESS"),
    error("open", "OffsetFetch", "UNSTABLE_OFFSET_COMMIT", 2),
    error(
        "open",
        "OffsetFetch",
        "NOT_COORDINATOR",
        expected=each((), (STOPS, gets("NOT_COORDINATOR")), ()),
    ),
    error("open", "ListOffsets", "NOT_LEADER_OR_FOLLOWER", 2),
    error("open", "Metadata", "LEADER_NOT_AVAILABLE", 2, either_way=(gets("UNKNOWN_TOPIC_OR_PART"),)),
    error(
        "open",
        "Metadata",
        "UNKNOWN_TOPIC_OR_PARTITION",
        2,
        expected=each((), (gets("UNKNOWN_TOPIC_OR_PART"),), ()),
    ),
    error(
        "open",
        "Metadata",
        "TOPIC_AUTHORIZATION_FAILED",
        expected=each(
            (),
            (gets("TOPIC_AUTHORIZATION_FAILED"),),
            (gets("TopicAuthorizationException"),),
        ),
    ),
)
