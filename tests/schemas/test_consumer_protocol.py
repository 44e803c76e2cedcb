"""The bytes of subscriptions and assignments, compared with Apache Kafka's and kafka-python's."""

import warnings
from typing import Any

import pytest

from schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from schemas.message import MalformedMessage, definition
from tests.schemas.definitions import apache, apache_rows, our_rows

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.consumer import metadata as kafka_python

# Written by kafka-clients 4.2.0: the same values in versions 0, 1, 2 and 3.
SUBSCRIPTIONS = [
    "0000 00000002 00066f7264657273 0007726566756e6473 0000000109",
    "0001 00000002 00066f7264657273 0007726566756e6473 0000000109"
    "00000001 00066f7264657273 00000002 00000000 00000002",
    "0002 00000002 00066f7264657273 0007726566756e6473 0000000109"
    "00000001 00066f7264657273 00000002 00000000 00000002 00000004",
    "0003 00000002 00066f7264657273 0007726566756e6473 0000000109"
    "00000001 00066f7264657273 00000002 00000000 00000002 00000004 00027231",
]
ASSIGNMENT = "00000001 00066f7264657273 00000002 00000000 00000002 ffffffff"

OWNED = (TopicPartition(topic="orders", partitions=(0, 2)),)
V0: dict[str, Any] = {"topics": ("orders", "refunds"), "user_data": b"\x09"}
SUBSCRIPTION = ConsumerProtocolSubscription(**V0, owned_partitions=OWNED, generation_id=4, rack_id="r1")
READ = [
    ConsumerProtocolSubscription(**V0),
    ConsumerProtocolSubscription(**V0, owned_partitions=OWNED),
    ConsumerProtocolSubscription(**V0, owned_partitions=OWNED, generation_id=4),
    SUBSCRIPTION,
]


@pytest.mark.parametrize("version", range(4))
def test_subscription(version: int) -> None:
    data = bytes.fromhex(SUBSCRIPTIONS[version])
    assert encode_subscription(SUBSCRIPTION, version) == data
    assert decode_subscription(data) == READ[version]


@pytest.mark.parametrize("version", range(4))
def test_assignment(version: int) -> None:
    data = version.to_bytes(2) + bytes.fromhex(ASSIGNMENT)
    assignment = ConsumerProtocolAssignment(assigned_partitions=OWNED)
    assert encode_assignment(assignment, version) == data
    assert decode_assignment(data) == assignment


def test_the_latest_version_is_written_unless_another_is_asked_for() -> None:
    assert encode_subscription(SUBSCRIPTION) == bytes.fromhex(SUBSCRIPTIONS[3])
    assert encode_assignment(ConsumerProtocolAssignment())[:2] == b"\0\3"


@pytest.mark.parametrize("version", range(4))
def test_kafka_python_reads_what_we_write_and_we_what_it_writes(version: int) -> None:
    theirs = kafka_python.ConsumerProtocolSubscription.decode(encode_subscription(SUBSCRIPTION, version))
    assert (tuple(theirs.topics), theirs.user_data, theirs.version) == (*V0.values(), version)
    assert decode_subscription(theirs.encode()) == READ[version]

    assigned = kafka_python.ConsumerProtocolAssignment(version, [("orders", [0, 2])], None).encode()
    assert decode_assignment(assigned).assigned_partitions == OWNED
    theirs = kafka_python.ConsumerProtocolAssignment.decode(assigned)
    assert (
        encode_assignment(ConsumerProtocolAssignment(assigned_partitions=OWNED), version) == theirs.encode()
    )


@pytest.mark.parametrize("cls", [ConsumerProtocolSubscription, ConsumerProtocolAssignment])
def test_fields_are_those_of_apache_kafka(cls: Any) -> None:
    versions = tuple(definition(cls).versions or ())
    assert versions == (0, 1, 2, 3)
    assert apache(cls.__name__)["validVersions"] == "0-3"
    assert our_rows(cls, versions) == apache_rows(apache(cls.__name__)["fields"], versions)


@pytest.mark.parametrize("version", [4, 0x7FFF])
def test_a_newer_version_is_read_as_the_newest_known(version: int) -> None:
    newer = version.to_bytes(2) + bytes.fromhex(SUBSCRIPTIONS[3])[2:] + b"more"
    assert decode_subscription(newer) == SUBSCRIPTION
    newer = version.to_bytes(2) + bytes.fromhex(ASSIGNMENT) + b"more"
    assert decode_assignment(newer).assigned_partitions == OWNED


def test_bytes_behind_the_last_field_of_a_known_version_are_left_alone() -> None:
    assert decode_subscription(bytes.fromhex(SUBSCRIPTIONS[0]) + b"more") == READ[0]


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff", b"\0\0", bytes.fromhex(SUBSCRIPTIONS[3])[:-1]])
def test_what_is_no_subscription_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage, match="ConsumerProtocolSubscription"):
        decode_subscription(data)


def test_a_partition_count_beyond_the_bytes_is_refused() -> None:
    with pytest.raises(MalformedMessage, match=r"assigned_partitions\.partitions"):
        decode_assignment(bytes.fromhex("0000 00000001 00066f7264657273 7fffffff 00000000"))
