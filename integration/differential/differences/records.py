"""Differences of Produce, Fetch and ListOffsets."""

from __future__ import annotations

from dataclasses import replace

from integration.differential.differences.guest import NO_ANSWER, Guest, error_of
from integration.differential.differences.partitions import (
    LARGEST_TIMESTAMP,
    PRODUCE,
    delete_records,
    fetched,
    offset,
    one,
    producing,
    stored_bytes,
)
from integration.differential.differences.scenario import difference
from integration.differential.stories.talk import AT_MS
from integration.differential.stories.transactions import Producer
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.describe_producers import DescribeProducersRequest, TopicRequest
from schemas.messages.produce import ProduceRequest
from schemas.records.batch import (
    ATTRIBUTES_AT,
    CRC_AT,
    HEADER_BYTES,
    MAX_TIMESTAMP_AT,
    Compression,
    Record,
    batches,
    crc32c,
    decode_header,
    encode,
)


@difference("D-null-records", apache_kafka=NO_ANSWER, kshim="INVALID_RECORD")
def a_produce_without_records(guest: Guest) -> str:
    guest.create("t")
    return guest.error(PRODUCE, producing(guest, "t", None))


@difference("D-expanded-batches", apache_kafka="NONE", kshim="MESSAGE_TOO_LARGE")
def a_batch_that_expands_to_a_thousand_times_its_size(guest: Guest) -> str:
    guest.create("t")
    batch = one(bytes(17 * 1024 * 1024), compression=Compression.GZIP)
    return guest.error(PRODUCE, producing(guest, "t", batch))


@difference("D-many-record-errors", apache_kafka=10_001, kshim=10_000)
def errors_of_single_records(guest: Guest) -> int:
    guest.create("t", cleanup_policy="compact")
    batch = encode([Record(number, AT_MS, None, b"v") for number in range(10_001)])
    answer = guest.answer(PRODUCE, producing(guest, "t", batch))
    return len(answer.responses[0].partition_responses[0].record_errors)


@difference("D-records-are-counted", apache_kafka="INVALID_RECORD", kshim="NONE")
def a_record_whose_key_is_longer_than_itself(guest: Guest) -> str:
    guest.create("t")
    batch = bytearray(one(b"value", key=b"key"))
    at = batch.index(b"key", HEADER_BYTES) - 1
    assert batch[at] == 2 * len(b"key")
    batch[at] = 2 * 60
    return guest.error(PRODUCE, producing(guest, "t", _signed(batch)))


@difference("D-whole-batches", apache_kafka="cut", kshim="whole")
def the_second_of_two_batches_at_the_limit(guest: Guest) -> str:
    guest.create("t")
    guest.produce("t", size=1000)
    guest.produce("t", size=1000)
    size = stored_bytes(guest, "t") // 2
    return "whole" if stored_bytes(guest, "t", partition_max_bytes=size + 100) == size else "cut"


@difference("D-large-fetches", apache_kafka=True, kshim=False)
def a_fetch_is_answered_with_more_than_16_mib(guest: Guest) -> bool:
    guest.create("t")
    for _ in range(20):
        guest.produce("t", size=1_048_000)
    limits = {"max_bytes": 50 << 20, "partition_max_bytes": 50 << 20}
    return stored_bytes(guest, "t", **limits) > 16 << 20


@difference("D-fetch-goes-on", apache_kafka=1, kshim=2)
def batches_in_a_fetch_across_the_end_of_a_segment(guest: Guest) -> int:
    guest.create("t", segment_ms="1000")
    guest.produce("t")
    guest.produce("t", at_ms=AT_MS + 5000)
    answer = guest.answer(12, guest.fetching((("t", 0, 0),), version=12))
    return len(list(batches(answer.responses[0].partitions[0].records)))


@difference("D-fetch-session-slots", apache_kafka=8, kshim=10)
def sessions_of_twelve_where_ten_are_allowed(guest: Guest) -> int:
    guest.create("t")
    request = guest.fetching((("t", 0, 0),), version=12, session=(0, 0))
    return sum(bool(guest.answer(12, request).session_id) for _ in range(12))


@difference("D-largest-timestamp-after-delete", apache_kafka=0, kshim=1)
def the_largest_timestamp_after_its_record_was_deleted(guest: Guest) -> int:
    guest.create("t")
    guest.produce("t", at_ms=AT_MS + 9000)
    guest.produce("t")
    delete_records(guest, "t", 1)
    return offset(guest, "t", LARGEST_TIMESTAMP)


@difference(
    "D-reason-of-a-refused-batch", apache_kafka=("CORRUPT_MESSAGE", False), kshim=("CORRUPT_MESSAGE", True)
)
def the_reason_why_a_batch_was_refused(guest: Guest) -> tuple[str, bool]:
    guest.create("t")
    batch = one(b"value")
    answer = guest.answer(PRODUCE, producing(guest, "t", batch[:-1] + b"!"))
    (part,) = answer.responses[0].partition_responses
    return ErrorCode(part.error_code).name, bool(part.error_message)


@difference("D-known-producers", apache_kafka=5100, kshim=5000)
def producers_that_a_partition_knows(guest: Guest) -> int:
    guest.create("t")
    for first in range(0, 5100, 300):
        for number in range(first, first + 300):
            batch = one(producer_id=1_000_000 + number, producer_epoch=0, base_sequence=0)
            guest.send(PRODUCE, producing(guest, "t", batch))
        for _ in range(300):
            assert error_of(guest.next_answer(PRODUCE, ApiKey.PRODUCE)) == "NONE"
    request = DescribeProducersRequest(topics=(TopicRequest(name=guest.name("t"), partition_indexes=(0,)),))
    return len(guest.answer(0, request).topics[0].partitions[0].active_producers)


@difference("D-aborted-transactions", apache_kafka=3, kshim=1)
def aborted_transactions_with_the_records_of_the_first(guest: Guest) -> int:
    guest.create("t")
    producer = Producer(guest, version=1)
    producer.init()
    for sequence in range(3):
        producer.add(("t", 0))
        producer.send("t", sequence=sequence)
        producer.end(committed=False)
    request = guest.fetching((("t", 0, 0),), version=12, isolation_level=1, partition_max_bytes=1)
    return len(guest.answer(12, request).responses[0].partitions[0].aborted_transactions)


@difference("D-uncounted-records", apache_kafka="UNKNOWN_SERVER_ERROR", kshim="INVALID_RECORD")
def a_record_whose_length_is_no_number(guest: Guest) -> str:
    guest.create("t")
    batch = bytearray(one(b"value" * 4))
    batch[HEADER_BYTES : HEADER_BYTES + 11] = b"\xff" * 11
    return guest.error(PRODUCE, producing(guest, "t", _signed(batch)))


@difference("D-largest-timestamp-of-a-batch", apache_kafka=AT_MS, kshim=AT_MS + 5000)
def a_batch_whose_largest_timestamp_is_wrong(guest: Guest) -> int:
    guest.create("t")
    batch = bytearray(one())
    batch[MAX_TIMESTAMP_AT : MAX_TIMESTAMP_AT + 8] = (AT_MS + 5000).to_bytes(8)
    assert guest.error(PRODUCE, producing(guest, "t", _signed(batch))) == "NONE"
    return decode_header(fetched(guest, "t")).max_timestamp


@difference("D-one-partition-twice", apache_kafka=1, kshim=2)
def a_produce_that_names_one_partition_twice(guest: Guest) -> int:
    guest.create("t")
    (topic,) = producing(guest, "t", one()).topic_data
    topic = replace(topic, partition_data=topic.partition_data * 2)
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=(topic,))
    return len(guest.answer(PRODUCE, request).responses[0].partition_responses)


def _signed(batch: bytearray) -> bytes:
    """The batch with the right CRC."""
    batch[CRC_AT:ATTRIBUTES_AT] = crc32c(batch[ATTRIBUTES_AT:]).to_bytes(4)
    return bytes(batch)
