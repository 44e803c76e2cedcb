"""kshim's own topic in the upstream, which clients may only read.

`GUARDED` has an entry for each API that writes to topics, shortens, deletes, extends or configures them.
Kafka refuses clients' writes to its own __consumer_offsets with the same errors. What Kafka allows
administrators to do to that topic is refused here, too: all clients reach the upstream with kshim's rights.

Pure: messages in, messages out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol, TypeVar
from uuid import UUID

from kshim.cluster.topics import ZERO_UUID
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.message import Structure, Value
from schemas.messages import (
    add_partitions_to_txn,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    elect_leaders,
    incremental_alter_configs,
    produce,
    write_txn_markers,
)
from schemas.messages.metadata import MetadataResponse
from schemas.registry import MESSAGES

INVALID: Final = ErrorCode.INVALID_TOPIC_EXCEPTION
WHY: Final = "Groups are kept in this topic: only kshim changes it."
TOPIC_RESOURCE: Final = 2
FIRST_ADD_IN_BATCHES: Final = 4
DESCRIBES: Final = frozenset((ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS))


class OwnTopic:
    """The topic's name, and its id once that is known."""

    __slots__ = ("_id", "_name", "name", "topic_id")

    def __init__(self, name: str) -> None:
        self.name = name
        self.topic_id = ZERO_UUID
        self._name = name.encode()
        self._id = b""

    def learn(self, found: MetadataResponse) -> None:
        """Note the topic's id, if the upstream has the topic."""
        for topic in found.topics:
            if topic.name == self.name and not topic.error_code:
                self.topic_id = topic.topic_id
                self._id = topic.topic_id.bytes

    def is_named(self, name: str | None, topic_id: UUID = ZERO_UUID) -> bool:
        """True if a name or an id stands for the topic."""
        return name == self.name or (topic_id == self.topic_id and topic_id != ZERO_UUID)

    def is_first(self, topic: bytes) -> bool:
        """True if the first topic of a Produce is this one; see `ProduceHead.topic`."""
        return topic == self._name or (topic == self._id and topic != b"")

    def marked(self, api_key: int, response: Any) -> object:
        """Mark the topic internal in a response that describes topics, as Kafka marks its own."""
        if api_key not in DESCRIBES:
            return response
        at = next((at for at, topic in enumerate(response.topics) if self.is_named(topic.name)), None)
        if at is None:
            return response
        topics = list(response.topics)
        topics[at] = replace(topics[at], is_internal=True)
        return replace(response, topics=tuple(topics))

    def may_be_in(self, frame: bytes | bytearray) -> bool:
        """False if a request cannot name the topic, however it is built."""
        return self._name in frame or (self._id != b"" and self._id in frame)


class Split(NamedTuple):
    """A request that named the topic, divided in two."""

    rest: object
    """The request without the topic; None if nothing is left to ask."""
    refused: Sequence[object]
    """The results of the refused entries, as the response has them."""


Part = Callable[[Any, OwnTopic], tuple[object, object]]
"""Divides one entry of a request into (the part to pass on or None, the result of the refused part or None).
"""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class _OfTopics(Structure, Protocol):
    @property
    def topics(self) -> Sequence[_Named]: ...


class _Resource(Protocol):
    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...


T = TypeVar("T")
E = TypeVar("E", bound=_OfTopics)


class Guarded(NamedTuple):
    """Where a request has its topics, and where the response has their results."""

    part: Part
    answered: str
    """The response's field with the results."""
    asked: Sequence[str] = ("topics",)
    """The request's fields with topics."""
    not_attempted: Callable[[Any], object] | None = None
    """Makes the result of each other topic, for an API that does nothing if one topic is refused."""


def split(api_key: int, api_version: int, request: Structure, own: OwnTopic) -> Split | None:
    """Divide a request into the topic and the rest; None if the request does not name the topic."""
    guarded = _guarded(api_key, api_version)
    kept: dict[str, list[object]] = {}
    refused: list[object] = []
    for field in guarded.asked:
        for entry in getattr(request, field) or ():
            left, result = guarded.part(entry, own)
            if left is not None:
                kept.setdefault(field, []).append(left)
            if result is not None:
                refused.append(result)
    if not refused:
        return None
    if guarded.not_attempted is not None:
        others = (guarded.not_attempted(entry) for entries in kept.values() for entry in entries)
        return Split(None, [*others, *refused])
    if not kept:
        return Split(None, refused)
    return Split(replace(request, **{field: tuple(kept.get(field, ())) for field in guarded.asked}), refused)


def refusal(api_key: int, api_version: int, refused: Sequence[object]) -> object:
    """Return the response to a request that named only this topic."""
    response = MESSAGES[ApiKey(api_key)][1]
    return response(**{_guarded(api_key, api_version).answered: tuple(refused)})


def joined(api_key: int, api_version: int, response: Value, refused: Sequence[object]) -> object:
    """Add the results for what was taken out to the upstream's response."""
    field = _guarded(api_key, api_version).answered
    return replace(response, **{field: (*getattr(response, field), *refused)})


def _guarded(api_key: int, api_version: int) -> Guarded:
    if api_key == ApiKey.ADD_PARTITIONS_TO_TXN and api_version >= FIRST_ADD_IN_BATCHES:
        return _ADD_IN_BATCHES
    return GUARDED[ApiKey(api_key)]


# ---- how each request is divided


def _whole(refuse: Callable[[T], object], name: str = "name") -> Part:
    """Divide a request in which each entry is one topic."""

    def part(entry: T, own: OwnTopic) -> tuple[object, object]:
        is_own = own.is_named(getattr(entry, name), getattr(entry, "topic_id", ZERO_UUID))
        return (None, refuse(entry)) if is_own else (entry, None)

    return part


def _inner(refuse: Callable[[E, Sequence[Any]], object]) -> Part:
    """Divide a request in which each entry has a list of topics."""

    def part(entry: E, own: OwnTopic) -> tuple[object, object]:
        ours = [topic for topic in entry.topics if own.is_named(topic.name)]
        if not ours:
            return entry, None
        left = tuple(topic for topic in entry.topics if not own.is_named(topic.name))
        return replace(entry, topics=left) if left else None, refuse(entry, ours)

    return part


def _numbers(topics: Sequence[object], field: str = "partitions") -> Iterator[int]:
    return (number for topic in topics for number in getattr(topic, field))


def _produce(entry: produce.TopicProduceData) -> produce.TopicProduceResponse:
    return produce.TopicProduceResponse(
        name=entry.name,
        topic_id=entry.topic_id,
        partition_responses=tuple(
            produce.PartitionProduceResponse(index=each.index, error_code=INVALID, base_offset=-1)
            for each in entry.partition_data
        ),
    )


def _delete_records(entry: delete_records.DeleteRecordsTopic) -> delete_records.DeleteRecordsTopicResult:
    return delete_records.DeleteRecordsTopicResult(
        name=entry.name,
        partitions=tuple(
            delete_records.DeleteRecordsPartitionResult(
                partition_index=each.partition_index, low_watermark=-1, error_code=INVALID
            )
            for each in entry.partitions
        ),
    )


def _create_topic(entry: create_topics.CreatableTopic) -> create_topics.CreatableTopicResult:
    return create_topics.CreatableTopicResult(
        name=entry.name,
        error_code=ErrorCode.TOPIC_ALREADY_EXISTS,
        error_message=f"Topic '{entry.name}' already exists.",
        configs=None,
    )


def _delete_topic(entry: str | delete_topics.DeleteTopicState, own: OwnTopic) -> tuple[object, object]:
    """Take the topic out of a DeleteTopics; up to v5 an entry is a name."""
    asked = delete_topics.DeleteTopicState(name=entry) if isinstance(entry, str) else entry
    if not own.is_named(asked.name, asked.topic_id):
        return entry, None
    return None, delete_topics.DeletableTopicResult(
        name=own.name, topic_id=own.topic_id, error_code=INVALID, error_message=WHY
    )


def _create_partitions(
    entry: create_partitions.CreatePartitionsTopic,
) -> create_partitions.CreatePartitionsTopicResult:
    return create_partitions.CreatePartitionsTopicResult(
        name=entry.name, error_code=INVALID, error_message=WHY
    )


def _alter(result: Callable[..., object]) -> Part:
    def part(entry: _Resource, own: OwnTopic) -> tuple[object, object]:
        if entry.resource_type != TOPIC_RESOURCE or not own.is_named(entry.resource_name):
            return entry, None
        return None, result(
            error_code=INVALID,
            error_message=WHY,
            resource_type=entry.resource_type,
            resource_name=entry.resource_name,
        )

    return part


def _reassign(
    entry: alter_partition_reassignments.ReassignableTopic,
) -> alter_partition_reassignments.ReassignableTopicResponse:
    return alter_partition_reassignments.ReassignableTopicResponse(
        name=entry.name,
        partitions=tuple(
            alter_partition_reassignments.ReassignablePartitionResponse(
                partition_index=each.partition_index, error_code=INVALID, error_message=WHY
            )
            for each in entry.partitions
        ),
    )


def _elect(entry: elect_leaders.TopicPartitions) -> elect_leaders.ReplicaElectionResult:
    return elect_leaders.ReplicaElectionResult(
        topic=entry.topic,
        partition_result=tuple(
            elect_leaders.PartitionResult(partition_id=number, error_code=INVALID, error_message=WHY)
            for number in entry.partitions
        ),
    )


def _add(
    entry: add_partitions_to_txn.AddPartitionsToTxnTopic, error: ErrorCode
) -> add_partitions_to_txn.AddPartitionsToTxnTopicResult:
    return add_partitions_to_txn.AddPartitionsToTxnTopicResult(
        name=entry.name,
        results_by_partition=tuple(
            add_partitions_to_txn.AddPartitionsToTxnPartitionResult(
                partition_index=number, partition_error_code=error
            )
            for number in entry.partitions
        ),
    )


def _add_refused(
    entry: add_partitions_to_txn.AddPartitionsToTxnTopic,
) -> add_partitions_to_txn.AddPartitionsToTxnTopicResult:
    return _add(entry, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _add_not_attempted(
    entry: add_partitions_to_txn.AddPartitionsToTxnTopic,
) -> add_partitions_to_txn.AddPartitionsToTxnTopicResult:
    return _add(entry, ErrorCode.OPERATION_NOT_ATTEMPTED)


def _add_in_batches(
    entry: add_partitions_to_txn.AddPartitionsToTxnTransaction, own: OwnTopic
) -> tuple[object, object]:
    if not any(own.is_named(topic.name) for topic in entry.topics):
        return entry, None
    results = tuple(
        _add_refused(topic) if own.is_named(topic.name) else _add_not_attempted(topic)
        for topic in entry.topics
    )
    return None, add_partitions_to_txn.AddPartitionsToTxnResult(
        transactional_id=entry.transactional_id, topic_results=results
    )


def _write_markers(
    entry: write_txn_markers.WritableTxnMarker, ours: Sequence[write_txn_markers.WritableTxnMarkerTopic]
) -> write_txn_markers.WritableTxnMarkerResult:
    topics = tuple(
        write_txn_markers.WritableTxnMarkerTopicResult(
            name=topic.name,
            partitions=tuple(
                write_txn_markers.WritableTxnMarkerPartitionResult(partition_index=number, error_code=INVALID)
                for number in topic.partition_indexes
            ),
        )
        for topic in ours
    )
    return write_txn_markers.WritableTxnMarkerResult(producer_id=entry.producer_id, topics=topics)


def _move(
    entry: alter_replica_log_dirs.AlterReplicaLogDir,
    ours: Sequence[alter_replica_log_dirs.AlterReplicaLogDirTopic],
) -> alter_replica_log_dirs.AlterReplicaLogDirTopicResult:
    return alter_replica_log_dirs.AlterReplicaLogDirTopicResult(
        topic_name=ours[0].name,
        partitions=tuple(
            alter_replica_log_dirs.AlterReplicaLogDirPartitionResult(
                partition_index=number, error_code=INVALID
            )
            for number in _numbers(ours)
        ),
    )


_ADD_IN_BATCHES: Final = Guarded(_add_in_batches, "results_by_transaction", ("transactions",))
GUARDED: Final[Mapping[ApiKey, Guarded]] = {
    ApiKey.PRODUCE: Guarded(_whole(_produce), "responses", ("topic_data",)),
    ApiKey.CREATE_TOPICS: Guarded(_whole(_create_topic), "topics"),
    ApiKey.DELETE_TOPICS: Guarded(_delete_topic, "responses", ("topics", "topic_names")),
    ApiKey.DELETE_RECORDS: Guarded(_whole(_delete_records), "topics"),
    ApiKey.ADD_PARTITIONS_TO_TXN: Guarded(
        _whole(_add_refused),
        "results_by_topic_v3_and_below",
        ("v3_and_below_topics",),
        not_attempted=_add_not_attempted,
    ),
    ApiKey.WRITE_TXN_MARKERS: Guarded(_inner(_write_markers), "markers", ("markers",)),
    ApiKey.ALTER_CONFIGS: Guarded(
        _alter(alter_configs.AlterConfigsResourceResponse), "responses", ("resources",)
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Guarded(_inner(_move), "results", ("dirs",)),
    ApiKey.CREATE_PARTITIONS: Guarded(_whole(_create_partitions), "results"),
    ApiKey.ELECT_LEADERS: Guarded(_whole(_elect, "topic"), "replica_election_results", ("topic_partitions",)),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Guarded(
        _alter(incremental_alter_configs.AlterConfigsResourceResponse), "responses", ("resources",)
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Guarded(_whole(_reassign), "responses"),
}
"""The APIs that change topics. An ElectLeaders for all partitions passes: it names no topic."""
