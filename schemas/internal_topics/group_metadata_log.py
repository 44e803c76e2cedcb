"""Keys and values of __consumer_offsets, the topic in which Kafka keeps committed offsets and groups.

A key is an int16 with the kind of the record, then its fields. A value is an int16 version, then the fields
of that version. A null value deletes what its key names. Kinds 0 and 1 are both committed offsets, kind 2 is
a classic group. `consumer_group_log` has the kinds of consumer groups. Those of share and streams groups are
read as an `UnknownKey`.

Offsets: v1 expire_timestamp, gone again in v2 (KIP-211); v3 leader_epoch (KIP-320); v4 flexible (KIP-915),
topic_id (KIP-848). Groups: v1 rebalance_timeout (KIP-62); v2 current_state_timestamp (KIP-211);
v3 group_instance_id (KIP-345); v4 flexible (KIP-915). All versions are read. As in Kafka 4.2, groups are
written in v3 and offsets in v4. An offset with an expire_timestamp is written in v1, without a leader epoch.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, overload
from uuid import UUID

from schemas import compiled
from schemas.internal_topics.consumer_group_log import KINDS, ConsumerGroupKey, ConsumerGroupValue
from schemas.message import MalformedMessage, T, definition, entity, field, message
from schemas.primitives import array, bytes_, int32, int64, nullable_string, string, uuid

VERSIONS: Final = range(5)  # of OffsetCommitValue and of GroupMetadataValue
TopicId = UUID
NO_ID: Final = UUID(int=0)
"""The id of a topic whose id is not known."""


@message(versions=range(1), flexible=None)
class OffsetCommitKey:
    group: str = field(string)
    topic: str = field(string)
    partition: int = field(int32)


@message(versions=VERSIONS, flexible=4)
class OffsetCommitValue:
    """A committed offset. Timestamps in ms since the epoch."""

    offset: int = field(int64)
    leader_epoch: int = field(int32, since=3, default=-1)
    metadata: str = field(string)
    commit_timestamp: int = field(int64)
    expire_timestamp: int = field(int64, since=1, until=1, default=-1)
    """-1 if the broker's retention decides when the offset expires."""
    topic_id: UUID = field(uuid, since=4, tag=0)
    """NO_ID if the topic's id was not known at the commit."""


@message(versions=range(4, 5), flexible=4)
class _UntaggedOffsetCommitValue:
    """An OffsetCommitValue of v4 without tagged fields."""

    offset: int = field(int64)
    leader_epoch: int = field(int32)
    metadata: str = field(string)
    commit_timestamp: int = field(int64)


@message(versions=range(1), flexible=None)
class GroupMetadataKey:
    group: str = field(string)


@entity
class MemberMetadata:
    """A member of a group. Timeouts in ms."""

    member_id: str = field(string)
    group_instance_id: str | None = field(nullable_string, since=3, default=None)
    client_id: str = field(string)
    client_host: str = field(string)
    rebalance_timeout: int = field(int32, since=1, default=-1)
    """-1 if the record had no rebalance timeout."""
    session_timeout: int = field(int32)
    subscription: bytes = field(bytes_)
    """The member's subscription for the chosen protocol; those for other protocols are not stored."""
    assignment: bytes = field(bytes_)


@message(versions=VERSIONS, flexible=4)
class GroupMetadataValue:
    """A group after its last completed rebalance, or a group without members."""

    protocol_type: str = field(string)
    """Empty if the group has no protocol type."""
    generation: int = field(int32)
    protocol: str | None = field(nullable_string)
    leader: str | None = field(nullable_string)
    current_state_timestamp: int = field(int64, since=2, default=-1)
    members: tuple[MemberMetadata, ...] = field(array(MemberMetadata))


class UnknownKey(NamedTuple):
    """A key of another kind: the kind's number, and the bytes after it."""

    kind: int
    data: bytes


Key = OffsetCommitKey | GroupMetadataKey | ConsumerGroupKey | UnknownKey
Value = OffsetCommitValue | GroupMetadataValue | ConsumerGroupValue

_NamingKey = OffsetCommitKey | GroupMetadataKey | ConsumerGroupKey
KEYS: Final[Mapping[int, type[_NamingKey]]] = {
    0: OffsetCommitKey,
    1: OffsetCommitKey,
    2: GroupMetadataKey,
    **{kind: key for kind, (key, _) in KINDS.items()},
}
VALUES: Final[Mapping[type[Key], type[Value]]] = {
    OffsetCommitKey: OffsetCommitValue,
    GroupMetadataKey: GroupMetadataValue,
    **dict(KINDS.values()),
}
_KIND_BYTES: Final[Mapping[type[Key], bytes]] = {key: kind.to_bytes(2) for kind, key in KEYS.items()}
"""The first two bytes of each class of keys; the higher kind of the two for offsets."""

_TOPIC_ID_FOLLOWS: Final = b"\1\0\x10"
"""The beginning of a section with one tagged field: a count of 1, tag 0, a size of 16 bytes."""


def decode_key(data: bytes) -> Key:
    """Decode a key; an unknown kind gives an UnknownKey. Raises MalformedMessage."""
    kind = _number(data, "key")
    if kind not in KEYS:
        return UnknownKey(kind, data[2:])
    return _decode(KEYS[kind], 0, data)


@overload
def decode_value(key: OffsetCommitKey, data: bytes | None) -> OffsetCommitValue | None: ...
@overload
def decode_value(key: GroupMetadataKey, data: bytes | None) -> GroupMetadataValue | None: ...
@overload
def decode_value(key: Key, data: bytes | None) -> Value | None: ...
def decode_value(key: Key, data: bytes | None) -> Value | None:
    """Decode the value of `key`; None for a null value, and for any value of an UnknownKey.

    Raises MalformedMessage for bytes that are not a value, and for an unknown version.
    """
    if data is None or isinstance(key, UnknownKey):
        return None
    cls = VALUES[type(key)]
    version = _number(data, cls.__name__)
    if version not in (definition(cls).versions or ()):
        raise MalformedMessage("an unknown version", api=cls.__name__, version=version)
    return _decode(cls, version, data)


def is_plain_offset_commit(data: bytes) -> bool:
    """True if `decode_plain_offset_commit` can certainly decode `data`; the check does not decode it.

    Such a value is an OffsetCommitValue of v4, as Kafka 4.2 writes it, with metadata of less than 127 bytes
    and no tagged field but the topic id.
    """
    size = len(data)
    if size < 24 or data[:2] != b"\0\4":
        return False
    length = data[14]  # one more than the length of the metadata
    if size == length + 23:
        return data[-1] == 0 and length < 128
    return size == length + 41 and data[-19:-16] == b"\1\0\x10" and 0 < length < 128


def decode_plain_offset_commit(data: bytes) -> OffsetCommitValue:
    return compiled.decoder(OffsetCommitValue, 4)(data, 2)[0]


def encode_key(key: Key) -> bytes:
    """The bytes of a key. The key of an offset is written as kind 1."""
    if isinstance(key, UnknownKey):
        return key.kind.to_bytes(2, signed=True) + key.data
    encode, _ = _encoder(type(key), 0)
    return encode(key, _KIND_BYTES[type(key)])


def encode_value(value: Value) -> bytes:
    """The bytes of a value, in the version that Kafka 4.2 writes."""
    if not isinstance(value, OffsetCommitValue):
        return _encode(value, 3 if isinstance(value, GroupMetadataValue) else 0)
    if value.expire_timestamp != -1:
        return _encode(value, 1)
    return _encode_plain_offset_commit(value)


def _encode_plain_offset_commit(value: Any) -> bytes:
    """Like `_encode(value, 4)`, in half the time. A hot path: every commit is written by it."""
    if value.unknown_tags:
        return _encode(value, 4)
    encode, start = _encoder(_UntaggedOffsetCommitValue, 4)
    data = encode(value, start)
    return data[:-1] + _TOPIC_ID_FOLLOWS + value.topic_id.bytes if value.topic_id.int else data


def _encode(value: Value, version: int) -> bytes:
    encode, start = _encoder(type(value), version)
    return encode(value, start)


def _number(data: bytes, of: str) -> int:
    if len(data) < 2:
        raise MalformedMessage(f"{len(data)} bytes are too few", api=of, version=-1)
    return int.from_bytes(data[:2], signed=True)


def _decode(cls: type[T], version: int, data: bytes) -> T:
    value, end = compiled.decoder(cls, version)(data, 2)
    if end != len(data):
        raise compiled.overfull(cls, version, data, end)
    return value


@compiled.cached
def _encoder(cls: type, version: int) -> tuple[compiled.Encoder, bytes]:
    """The encoder of one version, and the two bytes of the version with which a value begins."""
    return compiled.encoder(cls, version), version.to_bytes(2)
