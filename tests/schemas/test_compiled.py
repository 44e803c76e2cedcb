"""The compiled codecs equal the constructs they are generated from, for damaged bytes too."""

import io
import random
import tracemalloc
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas import compiled, primitives
from schemas.compiled import decode, decoder, encode, encoder, measurer
from schemas.message import MalformedMessage, TooManyBytes, entity, field, message
from schemas.messages.describe_cluster import DescribeClusterRequest
from schemas.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.primitives import ConstructError
from tests.schemas.strategies import message_versions, messages, version_name

pytestmark = pytest.mark.thorough

EVERY_VERSION = pytest.mark.parametrize("pair", message_versions(), ids=version_name)
FEW = settings(max_examples=5, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@entity
class Inner:
    number: int = field(primitives.int32)


@message(versions=range(0, 3), flexible=1)
class Everything:
    """One field of each wire type, including those that Kafka's messages do not use in this way."""

    boolean: bool = field(primitives.boolean)
    int8: int = field(primitives.int8)
    uint16: int = field(primitives.uint16)
    uint32: int = field(primitives.uint32)
    float64: float = field(primitives.float64)
    uuid: UUID = field(primitives.uuid)
    varint: int = field(primitives.varint)
    varlong: int = field(primitives.varlong)
    uvarint: int = field(primitives.uvarint)
    nullable_bytes: bytes | None = field(primitives.nullable_bytes)
    booleans: tuple[bool, ...] = field(primitives.array(primitives.boolean))
    uuids: tuple[UUID, ...] | None = field(primitives.nullable_array(primitives.uuid))
    strings: tuple[str | None, ...] = field(primitives.array(primitives.nullable_string))
    pairs: tuple[tuple[int, ...], ...] = field(primitives.array(primitives.array(primitives.int16)))
    inner: Inner = field(Inner)
    perhaps: Inner | None = field(primitives.nullable(Inner), default=None)
    tagged: tuple[Inner, ...] | None = field(primitives.array(Inner), since=1, nullable_since=2, tag=3)
    plain: str = field(primitives.string, plain=True)


ALL = [*message_versions(), *((Everything, version) for version in range(3))]


@pytest.mark.parametrize("pair", ALL, ids=version_name)
@FEW
@given(data=st.data())
def test_compiled_equals_construct(pair: tuple[Any, int], data: st.DataObject) -> None:
    cls, version = pair
    value = data.draw(messages(cls, version))
    frame = encode(value, version)
    assert cls.struct(version).build(value) == frame
    assert decode(cls, version, frame) == value
    assert cls.struct(version).parse(frame) == value
    assert decoder(cls, version)(b"ab" + frame + b"c", 2) == (value, len(frame) + 2)


@pytest.mark.parametrize("pair", ALL, ids=version_name)
@FEW
@given(data=st.data())
def test_a_message_is_measured_without_being_written(pair: tuple[Any, int], data: st.DataObject) -> None:
    cls, version = pair
    value = data.draw(messages(cls, version))
    frame = encode(value, version)
    size = measurer(cls, version)(value)
    assert size.bytes == len(frame)
    assert measurer(cls, version)(value, size.elements, size.bytes) == size
    assert encoder(cls, version)(value, b"", size.elements, size.bytes) == frame
    if size.bytes:
        with pytest.raises(TooManyBytes):
            measurer(cls, version)(value, size.elements, size.bytes - 1)


def read_both(cls: Any, version: int, frame: bytes) -> Any:
    """The value that the compiled decoder reads; None if it refuses the bytes. construct must agree."""
    error = None
    expected = found = None
    with suppress(ConstructError):
        stream = io.BytesIO(frame)
        expected = cls.struct(version).parse_stream(stream)
        if primitives.size_left(stream):
            expected = None
    try:
        found = decode(cls, version, frame)
    except MalformedMessage as refused:
        error = refused
    assert found == expected or repr(found) == repr(expected)  # NaN equals nothing
    if error:
        assert (error.api, error.version) == (cls.__name__, version)
        assert 0 <= error.offset <= len(frame)
    return found


@pytest.mark.parametrize("pair", ALL, ids=version_name)
@settings(FEW, max_examples=2)
@given(data=st.data())
def test_damaged_bytes_are_refused_or_are_another_message(pair: tuple[Any, int], data: st.DataObject) -> None:
    cls, version = pair
    frame = encode(data.draw(messages(cls, version)), version)
    chance = random.Random(len(frame))
    for end in range(len(frame)) if len(frame) < 60 else chance.sample(range(len(frame)), 60):
        assert read_both(cls, version, frame[:end]) is None
    assert read_both(cls, version, frame + b"\0") is None
    for _ in range(min(len(frame), 40)):
        damaged = bytearray(frame)
        damaged[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
        read_both(cls, version, bytes(damaged))
    read_both(cls, version, chance.randbytes(len(frame)))


@EVERY_VERSION
def test_a_length_that_nobody_sent_takes_no_memory(pair: tuple[Any, int]) -> None:
    cls, version = pair
    frame = cls.struct(version).build(cls()) + bytes(16)
    decode_any = decoder(cls, version)
    huge = [b"\x7f\xff\xff\xff", b"\xfe\xff\xff\xff\x0f", b"\x7f\xff"]
    frames = [frame[:at] + it + frame[at + len(it) :] for at in range(len(frame)) for it in huge]
    tracemalloc.start()
    try:
        for each in frames:
            with suppress(MalformedMessage):
                decode_any(each, 0)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


# What a field refuses, and the message.


def refusal(cls: Any, version: int, data: str) -> MalformedMessage:
    frame = bytes.fromhex(data)
    assert read_both(cls, version, frame) is None
    with pytest.raises(MalformedMessage) as caught:
        decode(cls, version, frame)
    return caught.value


@pytest.mark.parametrize(
    ("version", "data", "field", "offset", "reason"),
    [
        (0, "0001 67 000000", "generation_id", 3, "the bytes end here"),
        (0, "0005 67", "group_id", 2, "5 bytes announced, 1 left"),
        (0, "ffff", "group_id", 2, "null, where null is not allowed"),
        (0, "fffe", "group_id", 2, "null, where null is not allowed"),
        (4, "00", "group_id", 1, "null, where null is not allowed"),
        (4, "ffffffff 0f", "group_id", 5, "null, where null is not allowed"),
        (4, "80808080 08", "group_id", 5, "a string of 2147483647 bytes"),
        (4, "ffffffffff 01", "group_id", 1, "a varint of more than 5 bytes"),
        (4, "81 80 02" + "61" * 32768, "group_id", 3, "a string of 32768 bytes"),
        (4, "02 67 00000001 02 6d 00 01 05 03 aa", "tagged fields", 10, "3 bytes announced, 1 left"),
        (4, "02 67 00000001 02 6d 00 00 00", "", 10, "1 bytes too many"),
    ],
)
def test_a_refusal_says_what_and_where(version: int, data: str, field: str, offset: int, reason: str) -> None:
    error = refusal(HeartbeatRequest, version, data)
    assert (error.field, error.offset) == (field, offset)
    assert error.reason.startswith(reason)
    at = f"HeartbeatRequest v{version}" + (f".{field}" if field else "")
    assert str(error).startswith(f"{at} at byte {offset}: {reason}")


def test_the_field_is_found_among_numbers_read_together_and_inside_arrays() -> None:
    assert refusal(HeartbeatResponse, 1, "00000000 00").field == "error_code"
    error = refusal(JoinGroupRequest, 0, "0000 00000000 0000 0000 00000001 0001 72 00000005 00")
    assert (error.field, error.offset) == ("protocols.metadata", 21)
    error = refusal(JoinGroupRequest, 0, "0000 00000000 0000 0000 00000009" + "00" * 53)
    assert (error.field, error.reason) == ("protocols", "9 elements announced, 53 bytes left")


def test_a_tag_of_another_version_is_refused() -> None:
    start = encode(FetchRequest(), 14)[:-1]
    error = refusal(FetchRequest, 14, (start + b"\x01\x01\x01\0").hex())
    assert (error.field, error.reason) == ("tagged fields", "tag 1 belongs to another version")


# Odd bytes that are read, as Apache Kafka reads them.


@pytest.mark.parametrize(
    ("version", "data", "changes"),
    [
        (3, "0001 67 00000001 0001 6d fffe", {}),
        (3, "0001 67 00000001 0001 6d 8000", {}),
        (4, "02 67 00000001 02 6d ffffffff0f 00", {}),
        (4, "8280808000 67 00000001 02 6d 00 00", {}),
        (4, "8280808070 67 00000001 02 6d 00 00", {}),
        (4, "02 67 00000001 02 6d 00 ffffffff0f", {}),
        (4, "02 67 00000001 02 6d 00 8080808008", {}),
        (4, "02 67 00000001 02 6d 00 8200 05 00 04 00", {"unknown_tags": ((5, b""), (4, b""))}),
        (4, "02 67 00000001 02 6d 00 02 05 00 05 01 aa", {"unknown_tags": ((5, b""), (5, b"\xaa"))}),
        (4, "02 67 00000001 02 6d 00 01 ffffffff1f 00", {"unknown_tags": ((2**32 - 1, b""),)}),
    ],
)
def test_odd_lengths_and_tags(version: int, data: str, changes: dict[str, Any]) -> None:
    usual = {"group_id": "g", "generation_id": 1, "member_id": "m"}
    found = read_both(HeartbeatRequest, version, bytes.fromhex(data))
    assert found == HeartbeatRequest(**usual, **changes)


@pytest.mark.parametrize("size", ["00", "02", "ffffffff0f"])
def test_a_known_tag_ends_where_its_type_does(size: str) -> None:
    frame = bytes.fromhex("00000000 0000 00000000 01 01 00 " + size + " 01")
    assert read_both(FetchResponse, 16, frame) == FetchResponse()


def test_of_a_known_tag_that_comes_twice_the_last_value_counts() -> None:
    start = encode(FetchRequest(), 12)[:-1]
    frame = start + bytes.fromhex("03  00 02 02 61  05 00  00 02 02 62")
    assert read_both(FetchRequest, 12, frame) == FetchRequest(cluster_id="b", unknown_tags=((5, b""),))


def test_a_string_may_become_too_long_to_be_written_again() -> None:
    data = "7fff" + "ff" * 0x7FFF + "00000001 0001 6d"
    request = read_both(HeartbeatRequest, 0, bytes.fromhex(data))
    assert request.group_id == "\N{REPLACEMENT CHARACTER}" * 0x7FFF
    with pytest.raises(ValueError, match=r"HeartbeatRequest v0\.group_id"):
        encode(request, 0)


# What is written.


def test_bytes_of_a_flexible_version() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert encode(request, 4) == bytes.fromhex("02 67 00000001 02 6d 00 00")
    assert encode(request, 3) == bytes.fromhex("0001 67 00000001 0001 6d ffff")


def test_unknown_tags_are_kept_and_written_back() -> None:
    frame = bytes.fromhex("02 67 00000001 02 6d 00 02 05 01 aa 8001 00")
    request = decode(HeartbeatRequest, 4, frame)
    assert request == HeartbeatRequest(
        group_id="g", generation_id=1, member_id="m", unknown_tags=((5, b"\xaa"), (128, b""))
    )
    assert encode(request, 4) == frame


def test_tags_ascend_whoever_set_them() -> None:
    value = FetchResponse(unknown_tags=((7, b"b"), (1, b"a")))
    assert encode(value, 16).endswith(bytes.fromhex("01 02 01 01 61 07 01 62"))


def test_a_tagged_field_equal_to_its_default_is_not_written() -> None:
    usual, given = PartitionData(), PartitionData(diverging_epoch=EpochEndOffset(epoch=-1))
    topics = [(FetchableTopicResponse(partitions=(it,)),) for it in (usual, given)]
    plain, same = (encode(FetchResponse(responses=it), 16) for it in topics)
    assert plain == same


def test_records_are_a_slice_of_the_frame_and_bytes_are_a_copy() -> None:
    partition = PartitionProduceData(records=b"batches")
    request = ProduceRequest(topic_data=(TopicProduceData(partition_data=(partition,)),))
    frame = encode(request, 9)
    (topic,) = decode(ProduceRequest, 9, frame).topic_data
    found = topic.partition_data[0].records
    assert isinstance(found, memoryview)
    assert found.obj is frame
    assert found == b"batches"
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"m")
    (read,) = decode(JoinGroupRequest, 0, encode(JoinGroupRequest(protocols=(protocol,)), 0)).protocols
    assert type(read.metadata) is bytes


def test_a_memoryview_can_be_read_and_written() -> None:
    frame = encode(HeartbeatRequest(group_id="g"), 4)
    assert decode(HeartbeatRequest, 4, memoryview(frame)) == HeartbeatRequest(group_id="g")
    protocol = JoinGroupRequestProtocol(metadata=memoryview(b"xyz")[1:])
    assert encode(JoinGroupRequest(protocols=(protocol,)), 0).endswith(b"\0\0\0\2yz")


@pytest.mark.parametrize(
    ("value", "version", "reason"),
    [
        (HeartbeatRequest(group_id=None), 0, "HeartbeatRequest v0.group_id: None, where null is not allowed"),
        (HeartbeatRequest(group_id=None), 4, "HeartbeatRequest v4.group_id: None, where null is not allowed"),
        (MetadataRequest(topics=None), 0, "MetadataRequest v0.topics: None, where null is not allowed"),
        (
            MetadataRequest(topics=(MetadataRequestTopic(name=None),)),
            9,
            "MetadataRequest v9.topics.name: None, where null is not allowed",
        ),
        (
            HeartbeatRequest(generation_id=2**31),
            1,
            "HeartbeatRequest v1.generation_id, member_id: 'l' format",
        ),
        (Everything(uvarint=-1), 1, "Everything v1.uvarint: .*-1 is outside"),
        (HeartbeatRequest(group_id="x" * 32768), 4, "HeartbeatRequest v4.group_id: a string of 32768 bytes"),
        (HeartbeatRequest(group_id="\ud800"), 4, "HeartbeatRequest v4.group_id: 'utf-8' codec can't encode"),
    ],
)
def test_a_value_that_a_version_cannot_carry(value: Any, version: int, reason: str) -> None:
    with pytest.raises(ValueError, match=f"(?s)^{reason}"):
        encode(value, version)


def test_a_field_that_the_version_does_not_have_is_left_out() -> None:
    named = HeartbeatRequest(group_id="g", group_instance_id="i")
    assert encode(named, 2) == encode(HeartbeatRequest(group_id="g"), 2)
    assert decode(HeartbeatRequest, 2, encode(named, 2)).group_instance_id is None


def test_unknown_version() -> None:
    with pytest.raises(ValueError, match="HeartbeatRequest has no version 5"):
        decoder(HeartbeatRequest, 5)
    with pytest.raises(ValueError, match="DescribeClusterRequest has no version -1"):
        compiled.encoder(DescribeClusterRequest, -1)
