"""The bytes of __consumer_offsets, compared with what Apache Kafka 4.2.0 and older versions write."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    UnknownKey,
    decode_key,
    decode_plain_offset_commit,
    decode_value,
    encode_key,
    encode_value,
    is_plain_offset_commit,
)
from schemas.message import MalformedMessage

OFFSET_KEY = OffsetCommitKey(group="billing", topic="orders", partition=7)
GROUP_KEY = GroupMetadataKey(group="billing")

# From the log of Apache Kafka 4.2.0, after a consumer of kafka-python had joined, committed and left.
JOINED = bytes.fromhex(
    "0003 0008636f6e73756d6572 00000002 000572616e6765"
    "0028 6170702d65633139613761332d373166622d346135332d613434342d313539653434663539623766"
    "000001a1fd12357d 00000001"
    "0028 6170702d65633139613761332d373166622d346135332d613434342d313539653434663539623766"
    "ffff 0003617070 000a2f3132372e302e302e31 000493e0 00002710"
    "00000012 000000000001 00066f7264657273 00000000"
    "0000001a 000000000001 00066f7264657273 00000001 00000000 00000000"
)
COMMITTED = bytes.fromhex("0004 0000000000000001 00000000 056e6f7465 000001a1fd123781 00")
LEFT = bytes.fromhex("0003 0008636f6e73756d6572 00000003 ffff ffff 000001a1fd12378f 00000000")
CREATED = bytes.fromhex("0003 0000 00000000 ffff ffff 000001a1fd12350a 00000000")

# From the same log, after an OffsetCommit v10, and a v4 with a retention time.
COMMITTED_BY_TOPIC_ID = bytes.fromhex(
    "0004 0000000000000005 ffffffff 01 000001a1fd27fbc8 01 0010 5081a2dd0d1e4809867f9043505429c0"
)
COMMITTED_FOR_A_MINUTE = bytes.fromhex("0001 0000000000000005 0000 000001a1fd27fbcd 000001a1fd28e62d")
GOLDEN = UUID("5081a2dd-0d1e-4809-867f-9043505429c0")

MEMBER_ID = "app-ec19a7a3-71fb-4a53-a444-159e44f59b7f"
MEMBER = MemberMetadata(
    member_id=MEMBER_ID,
    client_id="app",
    client_host="/127.0.0.1",
    rebalance_timeout=300000,
    session_timeout=10000,
    subscription=bytes.fromhex("000000000001 00066f7264657273 00000000"),
    assignment=bytes.fromhex("000000000001 00066f7264657273 00000001 00000000 00000000"),
)
FOUND = [
    (
        GROUP_KEY,
        CREATED,
        GroupMetadataValue(current_state_timestamp=0x1A1FD12350A, protocol=None, leader=None),
    ),
    (
        GROUP_KEY,
        JOINED,
        GroupMetadataValue(
            protocol_type="consumer",
            generation=2,
            protocol="range",
            leader=MEMBER_ID,
            current_state_timestamp=0x1A1FD12357D,
            members=(MEMBER,),
        ),
    ),
    (
        OFFSET_KEY,
        COMMITTED,
        OffsetCommitValue(offset=1, leader_epoch=0, metadata="note", commit_timestamp=0x1A1FD123781),
    ),
    (
        OFFSET_KEY,
        COMMITTED_BY_TOPIC_ID,
        OffsetCommitValue(offset=5, commit_timestamp=0x1A1FD27FBC8, topic_id=GOLDEN),
    ),
    (
        OFFSET_KEY,
        COMMITTED_FOR_A_MINUTE,
        OffsetCommitValue(offset=5, commit_timestamp=0x1A1FD27FBCD, expire_timestamp=0x1A1FD27FBCD + 60000),
    ),
    (
        GROUP_KEY,
        LEFT,
        GroupMetadataValue(
            protocol_type="consumer",
            generation=3,
            protocol=None,
            leader=None,
            current_state_timestamp=0x1A1FD12378F,
        ),
    ),
]


@pytest.mark.parametrize(("key", "data", "value"), FOUND)
def test_what_a_broker_wrote(key: Any, data: bytes, value: Any) -> None:
    """[157] [158]"""
    assert decode_value(key, data) == value
    assert encode_value(value) == data


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ("0001 000762696c6c696e67 00066f7264657273 00000007", OFFSET_KEY),
        ("0002 000762696c6c696e67", GROUP_KEY),
    ],
)
def test_keys(data: str, key: Any) -> None:
    assert decode_key(bytes.fromhex(data)) == key
    assert encode_key(key) == bytes.fromhex(data)


def test_key_of_kind_0_is_an_offset_too() -> None:
    assert decode_key(bytes.fromhex("0000 000762696c6c696e67 00066f7264657273 00000007")) == OFFSET_KEY


# The same value in every version, written by the classes of Kafka 4.2.0.
TOPIC_ID = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
OFFSETS = [
    ("0000 0000000000000064 00016d 0000018bcfe56800", {}),
    ("0001 0000000000000064 00016d 0000018bcfe56800 0000018bcfee8fc0", {"expire_timestamp": 1700000600000}),
    ("0002 0000000000000064 00016d 0000018bcfe56800", {}),
    ("0003 0000000000000064 00000005 00016d 0000018bcfe56800", {"leader_epoch": 5}),
    ("0004 0000000000000064 00000005 026d 0000018bcfe56800 00", {"leader_epoch": 5}),
    (
        "0004 0000000000000064 00000005 026d 0000018bcfe56800 01 0010 0102030405060708090a0b0c0d0e0f10",
        {"leader_epoch": 5, "topic_id": TOPIC_ID},
    ),
    (
        "0004 0000000000000064 00000005 026d 0000018bcfe56800 01 0903 010203",
        {"leader_epoch": 5, "unknown_tags": ((9, b"\1\2\3"),)},
    ),
]


@pytest.mark.parametrize(("data", "more"), OFFSETS)
def test_offset_versions(data: str, more: dict[str, Any]) -> None:
    """[158] [160]: including the flexible version, with unknown tags."""
    value = OffsetCommitValue(offset=100, metadata="m", commit_timestamp=1700000000000, **more)
    assert decode_value(OFFSET_KEY, bytes.fromhex(data)) == value


@pytest.mark.parametrize(("data", "more"), [OFFSETS[1], *OFFSETS[4:]])
def test_an_offset_is_written_as_kafka_writes_it(data: str, more: dict[str, Any]) -> None:
    """[158]"""
    value = OffsetCommitValue(offset=100, metadata="m", commit_timestamp=1700000000000, **more)
    assert encode_value(value) == bytes.fromhex(data)


GROUPS = [
    "0000 0008636f6e73756d6572 00000003 000572616e6765 00056170702d31 00000001"
    "00056170702d31 0003617070 000a2f3132372e302e302e31 0000afc8 000000020102 0000000103",
    "0001 0008636f6e73756d6572 00000003 000572616e6765 00056170702d31 00000001"
    "00056170702d31 0003617070 000a2f3132372e302e302e31 000493e0 0000afc8 000000020102 0000000103",
    "0002 0008636f6e73756d6572 00000003 000572616e6765 00056170702d31 0000018bcfe56800 00000001"
    "00056170702d31 0003617070 000a2f3132372e302e302e31 000493e0 0000afc8 000000020102 0000000103",
    "0003 0008636f6e73756d6572 00000003 000572616e6765 00056170702d31 0000018bcfe56800 00000001"
    "00056170702d31 00026931 0003617070 000a2f3132372e302e302e31 000493e0 0000afc8 000000020102 0000000103",
    "0004 09636f6e73756d6572 00000003 0672616e6765 066170702d31 0000018bcfe56800 02"
    "066170702d31 036931 04617070 0b2f3132372e302e302e31 000493e0 0000afc8 030102 0203 010301aa 00",
]


def group_of(version: int) -> GroupMetadataValue:
    """The value that GROUPS[version] holds."""
    member: dict[str, Any] = {"member_id": "app-1", "client_id": "app", "client_host": "/127.0.0.1"}
    member |= {"session_timeout": 45000, "subscription": b"\1\2", "assignment": b"\3"}
    group: dict[str, Any] = {
        "protocol_type": "consumer",
        "generation": 3,
        "protocol": "range",
        "leader": "app-1",
    }
    if version >= 1:
        member["rebalance_timeout"] = 300000
    if version >= 2:
        group["current_state_timestamp"] = 1700000000000
    if version >= 3:
        member["group_instance_id"] = "i1"
    if version >= 4:
        member["unknown_tags"] = ((3, b"\xaa"),)
    return GroupMetadataValue(**group, members=(MemberMetadata(**member),))


@pytest.mark.parametrize("version", range(5))
def test_group_versions(version: int) -> None:
    """[160]: the first two versions have no time."""
    assert decode_value(GROUP_KEY, bytes.fromhex(GROUPS[version])) == group_of(version)


def test_a_group_is_written_as_kafka_writes_it() -> None:
    """[157]"""
    assert encode_value(group_of(3)) == bytes.fromhex(GROUPS[3])
    empty = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=1700000000000
    )
    assert encode_value(empty) == bytes.fromhex("0003 0000 00000000 ffff ffff 0000018bcfe56800 00000000")


@pytest.mark.parametrize("key", [OFFSET_KEY, GROUP_KEY])
def test_a_null_value_is_none(key: Any) -> None:
    """[158]"""
    assert decode_value(key, None) is None


@pytest.mark.parametrize("kind", [-1, 9, 15, 17, 0x7FFF])
def test_a_key_of_another_kind_is_kept_as_it_is(kind: int) -> None:
    """[159]"""
    data = kind.to_bytes(2, signed=True) + b"\0\7billing"
    key = decode_key(data)
    assert key == UnknownKey(kind, b"\0\7billing")
    assert encode_key(key) == data
    assert decode_value(key, b"\0\0whatever") is None


@pytest.mark.parametrize(
    "data", ["", "00", "0001", "0001 0007 62696c", "0002 000762696c6c696e67 00", "0002 ffff"]
)
def test_what_is_no_key_is_refused(data: str) -> None:
    """[159]"""
    with pytest.raises(MalformedMessage):
        decode_key(bytes.fromhex(data))


@pytest.mark.parametrize("key", [OFFSET_KEY, GROUP_KEY])
@pytest.mark.parametrize("data", ["", "00", "0005", "ffff 0000000000000064", "0003"])
def test_what_is_no_value_is_refused(key: Any, data: str) -> None:
    """[159] [161]"""
    with pytest.raises(MalformedMessage, match="Value"):
        decode_value(key, bytes.fromhex(data))


@pytest.mark.parametrize(("key", "data"), [(key, data) for key, data, _ in FOUND])
def test_a_value_with_a_byte_too_few_or_too_many_is_refused(key: Any, data: bytes) -> None:
    for wrong in (data[:-1], data + b"\0"):
        with pytest.raises(MalformedMessage):
            decode_value(key, wrong)


def is_decoded_alike(data: bytes) -> bool:
    """True if the record is plain; a plain record is decoded as any other."""
    is_plain = is_plain_offset_commit(data)
    assert not is_plain or decode_plain_offset_commit(data) == decode_value(OFFSET_KEY, data)
    return is_plain


@pytest.mark.parametrize(
    ("data", "is_plain"),
    [
        (COMMITTED, True),
        (COMMITTED_BY_TOPIC_ID, True),
        (COMMITTED_FOR_A_MINUTE, False),
        (COMMITTED + b"\0", False),
        (COMMITTED[:-1] + b"\1", False),
        (COMMITTED_BY_TOPIC_ID[:-1], False),
        (b"", False),
        (bytes(24), False),
    ],
)
def test_what_is_plain(data: bytes, is_plain: bool) -> None:
    assert is_decoded_alike(data) is is_plain


@pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 500])
@pytest.mark.parametrize("topic_id", [UUID(int=0), GOLDEN])
def test_metadata_of_a_plain_value(length: int, topic_id: UUID) -> None:
    value = OffsetCommitValue(offset=7, metadata="m" * length, commit_timestamp=5, topic_id=topic_id)
    assert is_decoded_alike(encode_value(value)) is (length < 127)


@given(st.sampled_from([COMMITTED, COMMITTED_BY_TOPIC_ID]), st.data())
def test_a_plain_value_with_a_byte_changed(data: bytes, draw: st.DataObject) -> None:
    changed = bytearray(data)
    changed[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    is_decoded_alike(bytes(changed))


@given(st.binary(min_size=12, max_size=60))
def test_any_value(rest: bytes) -> None:
    is_decoded_alike(b"\0\4" + rest)
