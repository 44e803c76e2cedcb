"""Subscription and assignment of consumers: bytes in JoinGroup and SyncGroup for protocol type "consumer".

The bytes are an int16 version, then the fields of that version. v1 owned_partitions (KIP-429);
v2 generation_id (KIP-792); v3 rack_id (KIP-881). An assignment has the same fields in all versions.

The broker passes these bytes from member to member. It decodes them only to find the topics that a group
consumes. As in Kafka, a version above 3 is read as 3, and bytes after the last known field are ignored: newer
clients add fields only at the end.

Decoded fields take up to a hundred times the memory of their bytes, so the number of elements is bounded.
"""

from collections.abc import Iterable
from typing import Final

from schemas import compiled
from schemas.message import MalformedMessage, T, TooManyElements, entity, field, message
from schemas.primitives import array, int32, nullable_bytes, nullable_string, string

LATEST: Final = 3
MOST_ELEMENTS: Final = 100_000
"""Most elements of all arrays together. Bytes with more elements count as malformed."""


@entity
class TopicPartition:
    topic: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


@message(versions=range(LATEST + 1), flexible=None)
class ConsumerProtocolSubscription:
    topics: tuple[str, ...] = field(array(string))
    user_data: bytes | None = field(nullable_bytes, default=None)
    owned_partitions: tuple[TopicPartition, ...] = field(array(TopicPartition), since=1)
    generation_id: int = field(int32, since=2, default=-1)
    rack_id: str | None = field(nullable_string, since=3, default=None)


@message(versions=range(LATEST + 1), flexible=None)
class ConsumerProtocolAssignment:
    assigned_partitions: tuple[TopicPartition, ...] = field(array(TopicPartition))
    user_data: bytes | None = field(nullable_bytes, default=None)


def partitions_of(topics: Iterable[TopicPartition]) -> frozenset[tuple[str, int]]:
    """The partitions that owned_partitions or assigned_partitions name."""
    return frozenset((each.topic, partition) for each in topics for partition in each.partitions)


def decode_subscription(data: bytes, most: int = MOST_ELEMENTS) -> ConsumerProtocolSubscription:
    """Decode a consumer's metadata in JoinGroup. Raises MalformedMessage."""
    version = _version(ConsumerProtocolSubscription, data)
    return _decode(ConsumerProtocolSubscription, version, data, most)


def decode_topics(data: bytes, most: int = MOST_ELEMENTS) -> tuple[str, ...]:
    """Decode the topics in a consumer's metadata. Raises MalformedMessage.

    Only the fields of v0 are read; all versions begin with them. As in Apache Kafka, any bytes may follow.
    """
    return _decode(ConsumerProtocolSubscription, 0, data, most).topics


def encode_subscription(subscription: ConsumerProtocolSubscription, version: int = LATEST) -> bytes:
    """Encode a consumer's metadata for JoinGroup."""
    return _encode(subscription, version)


def decode_assignment(data: bytes, most: int = MOST_ELEMENTS) -> ConsumerProtocolAssignment:
    """Decode a consumer's assignment in SyncGroup. Raises MalformedMessage."""
    version = _version(ConsumerProtocolAssignment, data)
    return _decode(ConsumerProtocolAssignment, version, data, most)


def encode_assignment(assignment: ConsumerProtocolAssignment, version: int = LATEST) -> bytes:
    """Encode a consumer's assignment for SyncGroup."""
    return _encode(assignment, version)


def version_of(data: bytes) -> int:
    """The version of the bytes, LATEST if it is a later one. Raises MalformedMessage."""
    return _version(ConsumerProtocolSubscription, data)


def _version(cls: type[object], data: bytes) -> int:
    version = int.from_bytes(data[:2], signed=True)
    if len(data) < 2 or version < 0:
        raise MalformedMessage("no version, or a negative one", api=cls.__name__, version=version)
    return min(version, LATEST)


def _decode(cls: type[T], version: int, data: bytes, most: int) -> T:
    try:
        return compiled.decoder(cls, version)(data, 2, most)[0]
    except TooManyElements:
        raise MalformedMessage(f"more than {most} elements", api=cls.__name__, version=version) from None


def _encode(value: object, version: int) -> bytes:
    return compiled.encoder(type(value), version)(value, version.to_bytes(2))
