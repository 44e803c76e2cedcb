"""The bytes of __transaction_state, compared with what Apache Kafka 4.2.0 writes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schemas.internal_topics.transaction_log import (
    PartitionsSchema,
    TransactionLogValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from schemas.message import MalformedMessage

# From the log of Apache Kafka 4.2.0: a producer began, wrote to two partitions, and committed; then it
# aborted a transaction, and got a new epoch for it.
KEY = bytes.fromhex("0000 0009 676f6c64656e2e7478")
HEAD, NEXT = "0001 00000000000000d6 0000 0000ea60", "0001 00000000000000d6 0001 0000ea60"
BEGUN = bytes.fromhex(f"{HEAD} 00 00 000001a1fde20082 ffffffffffffffff 00")
ONGOING = bytes.fromhex(
    f"{HEAD} 01 02 09676f6c64656e2e74 03 00000000 00000002 00 000001a1fde2008d 000001a1fde2008d 00"
)
COMMITTED = bytes.fromhex(f"{HEAD} 04 01 000001a1fde20094 000001a1fde2008d 00")
ABORTING = bytes.fromhex(
    f"{NEXT} 03 02 09676f6c64656e2e74 02 00000001 00 000001a1fde200eb 000001a1fde200e8 01 02 02 0002"
)

VALUE = TransactionLogValue(
    producer_id=214,
    transaction_timeout_ms=60_000,
    transaction_partitions=None,
    transaction_last_update_timestamp_ms=0x1A1FDE20082,
    transaction_start_timestamp_ms=-1,
)
FOUND = [
    (BEGUN, VALUE),
    (
        ONGOING,
        replace(
            VALUE,
            transaction_status=1,
            transaction_partitions=(PartitionsSchema(topic="golden.t", partition_ids=(0, 2)),),
            transaction_last_update_timestamp_ms=0x1A1FDE2008D,
            transaction_start_timestamp_ms=0x1A1FDE2008D,
        ),
    ),
    (
        COMMITTED,
        replace(
            VALUE,
            transaction_status=4,
            transaction_partitions=(),
            transaction_last_update_timestamp_ms=0x1A1FDE20094,
            transaction_start_timestamp_ms=0x1A1FDE2008D,
        ),
    ),
    (
        ABORTING,
        replace(
            VALUE,
            producer_epoch=1,
            transaction_status=3,
            transaction_partitions=(PartitionsSchema(topic="golden.t", partition_ids=(1,)),),
            transaction_last_update_timestamp_ms=0x1A1FDE200EB,
            transaction_start_timestamp_ms=0x1A1FDE200E8,
            client_transaction_version=2,
        ),
    ),
]


@pytest.mark.parametrize(("data", "value"), FOUND)
def test_what_kafka_writes_is_read_and_written_the_same(data: bytes, value: TransactionLogValue) -> None:
    assert decode_value(data) == value
    assert encode_value(value) == data


def test_a_key() -> None:
    assert decode_key(KEY) == "golden.tx"
    assert encode_key("golden.tx") == KEY


def test_version_0_which_older_brokers_wrote() -> None:
    value = decode_value(
        bytes.fromhex("0000 00000000000000d6 0000 0000ea60 00 ffffffff" + "00" * 8 + "ff" * 8)
    )
    assert value == replace(VALUE, transaction_last_update_timestamp_ms=0)


def test_the_producer_id_before_and_the_one_to_come() -> None:
    value = replace(VALUE, previous_producer_id=5, next_producer_id=6, next_producer_epoch=7)
    assert decode_value(encode_value(value)) == value


def test_a_tombstone_and_a_key_of_another_kind() -> None:
    assert decode_value(None) is None
    assert decode_key(bytes.fromhex("0001 0000")) is None


@pytest.mark.parametrize("data", [b"", b"\0", KEY[:-1], KEY + b"\0"])
def test_what_is_no_key(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_key(data)


@pytest.mark.parametrize("data", [b"", b"\0", BEGUN[:-1], BEGUN + b"\0", b"\0\2" + BEGUN[2:]])
def test_what_is_no_value(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_value(data)
