"""The records of consumer groups, compared with what the classes of Kafka 4.4.0 write."""

from typing import Any
from uuid import UUID

import pytest

from schemas.internal_topics.consumer_group_log import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    PartitionMetadata,
    TopicMetadata,
    TopicPartition,
    TopicPartitions,
)
from schemas.internal_topics.group_metadata_log import (
    Key,
    UnknownKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from schemas.message import MalformedMessage

FOO = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
IN_HEX = FOO.hex
GROUP = "0001 67"
MEMBER = "0001 67 0001 6d"

WRITTEN: list[tuple[str, Key, str, Any]] = [
    (
        f"0003 {GROUP}",
        ConsumerGroupMetadataKey(group="g"),
        "0000 00000007 01 00 08 fffffffffffffffb",
        ConsumerGroupMetadataValue(epoch=7, metadata_hash=-5),
    ),
    (
        f"0003 {GROUP}",
        ConsumerGroupMetadataKey(group="g"),
        "0000 00000007 00",
        ConsumerGroupMetadataValue(epoch=7),
    ),
    (
        f"0004 {GROUP}",
        ConsumerGroupPartitionMetadataKey(group="g"),
        f"0000 02 {IN_HEX} 04666f6f 00000003 02 00000000 02 037231 00 00 00",
        ConsumerGroupPartitionMetadataValue(
            topics=(
                TopicMetadata(
                    topic_id=FOO,
                    topic_name="foo",
                    num_partitions=3,
                    partition_metadata=(PartitionMetadata(partition=0, racks=("r1",)),),
                ),
            )
        ),
    ),
    (
        f"0005 {MEMBER}",
        ConsumerGroupMemberMetadataKey(group="g", member_id="m"),
        "0000 0269 00 0263 032f68 03 04626172 04666f6f 01 00001388 0672616e6765"
        "01 00 11 01 0000afc8 02 0672616e6765 030001 00 00",
        ConsumerGroupMemberMetadataValue(
            instance_id="i",
            rack_id=None,
            client_id="c",
            client_host="/h",
            subscribed_topic_names=("bar", "foo"),
            subscribed_topic_regex="",
            rebalance_timeout_ms=5000,
            server_assignor="range",
            classic_member_metadata=ClassicMemberMetadata(
                session_timeout_ms=45000,
                supported_protocols=(ClassicProtocol(name="range", metadata=b"\0\1"),),
            ),
        ),
    ),
    (
        f"0005 {MEMBER}",
        ConsumerGroupMemberMetadataKey(group="g", member_id="m"),
        "0000 00 0272 0263 032f68 01 00 ffffffff 00 00",
        ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id="r",
            client_id="c",
            client_host="/h",
            subscribed_topic_names=(),
            subscribed_topic_regex=None,
            server_assignor=None,
        ),
    ),
    (
        f"0006 {GROUP}",
        ConsumerGroupTargetAssignmentMetadataKey(group="g"),
        "0000 00000007 01 00 08 0000018bcfe56800",
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=7, assignment_timestamp=1700000000000),
    ),
    (
        f"0006 {GROUP}",
        ConsumerGroupTargetAssignmentMetadataKey(group="g"),
        "0000 00000007 00",
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=7),
    ),
    (
        f"0007 {MEMBER}",
        ConsumerGroupTargetAssignmentMemberKey(group="g", member_id="m"),
        f"0000 02 {IN_HEX} 03 00000000 00000002 00 00",
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=(TopicPartition(topic_id=FOO, partitions=(0, 2)),)
        ),
    ),
    (
        f"0008 {MEMBER}",
        ConsumerGroupCurrentMemberAssignmentKey(group="g", member_id="m"),
        f"0000 00000007 00000006 01 02 {IN_HEX} 03 00000000 00000002 01 00 09 03 00000005 00000007"
        f"02 {IN_HEX} 02 00000001 00 00",
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=7,
            previous_member_epoch=6,
            state=1,
            assigned_partitions=(TopicPartitions(topic_id=FOO, partitions=(0, 2), assignment_epochs=(5, 7)),),
            partitions_pending_revocation=(TopicPartitions(topic_id=FOO, partitions=(1,)),),
        ),
    ),
    (
        "0010 0001 67 0003 662e2a",
        ConsumerGroupRegularExpressionKey(group="g", regular_expression="f.*"),
        "0000 02 04666f6f 0000000000000009 0000018bcfe56800 00",
        ConsumerGroupRegularExpressionValue(topics=("foo",), version=9, timestamp=1700000000000),
    ),
]


@pytest.mark.parametrize(("key_data", "key", "data", "value"), WRITTEN)
def test_178_keys_and_values_are_kafkas(key_data: str, key: Any, data: str, value: Any) -> None:
    """Also values of before Kafka 4.1 and 4.3, which lack tagged fields."""
    assert decode_key(bytes.fromhex(key_data)) == key
    assert encode_key(key) == bytes.fromhex(key_data)
    assert decode_value(key, bytes.fromhex(data)) == value
    assert encode_value(value) == bytes.fromhex(data)


def test_a_value_with_an_unknown_tag_is_read() -> None:
    found: Any = decode_value(ConsumerGroupMetadataKey(group="g"), bytes.fromhex("0000 00000007 01 05 01 aa"))
    assert found.epoch == 7


@pytest.mark.parametrize("kind", sorted({each[0][:4] for each in WRITTEN}))
def test_178_a_null_value_is_a_tombstone(kind: str) -> None:
    key = next(key for data, key, _, _ in WRITTEN if data.startswith(kind))
    assert decode_value(key, None) is None


@pytest.mark.parametrize("kind", [9, 10, 15, 17, 23])
def test_179_kinds_of_share_and_streams_groups_are_recognised(kind: int) -> None:
    assert decode_key(kind.to_bytes(2) + b"\0\1g") == UnknownKey(kind, b"\0\1g")


def test_a_later_version_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="unknown version"):
        decode_value(ConsumerGroupMetadataKey(group="g"), bytes.fromhex("0001 00000007 00"))
