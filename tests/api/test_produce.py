"""Produce: what is appended, what is refused and why, and when it is answered. Facts: Apache Kafka 4.2's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from kshim.answering import Broker
from kshim.api.delete_topics import delete_topics
from kshim.api.produce import produce
from kshim.callers import Refused
from kshim.cluster import NewTopic
from kshim.producing.appends import ProducerAppends
from schemas.error_code import ErrorCode
from schemas.messages.delete_topics import DeleteTopicsRequest
from schemas.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from schemas.records.batch import Compression, Record, crc32c, decode_header, encode
from tests.api.harness import (
    NOW_MS,
    PENDING,
    HeldStore,
    advance,
    ask,
    batch,
    collect,
    context,
    create,
    new_broker,
    result,
)


def request(
    *records: bytes | None, topic: str = "t", index: int = 0, acks: int = -1, **more: Any
) -> ProduceRequest:
    data = tuple(PartitionProduceData(index=index + i, records=item) for i, item in enumerate(records))
    topic_id = more.pop("topic_id", UUID(int=0))
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=(TopicProduceData(name=topic, topic_id=topic_id, partition_data=data),),
        **more,
    )


def send(broker: Broker, records: bytes | None, version: int = 9, **more: Any) -> Any:
    """The answer for the only partition, to which `records` were sent."""
    response = ask(produce, broker, request(records, **more), version)
    return response.responses[0].partition_responses[0]


@pytest.fixture
def broker() -> Broker:
    broker = new_broker()
    create(broker, "t", 2)
    return broker


def test_offsets_go_on_from_batch_to_batch(broker: Broker) -> None:
    assert [send(broker, batch(b"a", b"b")).base_offset for _ in range(3)] == [0, 2, 4]
    answer = send(broker, batch(b"a"))
    assert (answer.error_code, answer.log_append_time_ms, answer.log_start_offset) == (0, -1, 0)
    stored = broker.log.read(broker.cluster.topics["t"].partitions[0].partition_no, 6, 1 << 20)
    assert decode_header(stored).base_offset == 6


def test_each_partition_is_answered_in_the_order_of_the_request(broker: Broker) -> None:
    response = ask(produce, broker, request(batch(), batch(), batch()), 9)
    (topic,) = response.responses
    assert topic.name == "t"
    assert [(p.index, p.error_code) for p in topic.partition_responses] == [
        (0, ErrorCode.NONE),
        (1, ErrorCode.NONE),
        (2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_a_topic_that_is_named_twice_is_answered_once(broker: Broker) -> None:
    create(broker, "u")
    first, between, again = (request(batch(), topic=name).topic_data[0] for name in ("t", "u", "t"))
    sent = replace(request(), topic_data=(first, between, again))
    answered = ask(produce, broker, sent, 9).responses
    assert [(topic.name, len(topic.partition_responses)) for topic in answered] == [("t", 2), ("u", 1)]


def test_no_topics_no_answers(broker: Broker) -> None:
    assert ask(produce, broker, ProduceRequest(acks=-1, timeout_ms=1, topic_data=()), 9) == ProduceResponse()
    assert ask(produce, broker, request(topic="nope"), 9) == ProduceResponse()


def test_v13_finds_topics_by_id_alone(broker: Broker) -> None:
    topic_id = broker.cluster.topics["t"].topic_id
    assert send(broker, batch(), 13, topic="", topic_id=topic_id).error_code == ErrorCode.NONE
    assert send(broker, batch(), 13, topic_id=UUID(int=9)).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert send(broker, batch(), 13, topic_id=UUID(int=0)).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    bad_index = send(broker, batch(), 13, topic_id=topic_id, index=9)
    assert bad_index.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_produce_makes_no_topic(broker: Broker) -> None:
    assert send(broker, batch(), topic="new").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "new" not in broker.cluster.topics


BATCH = batch(b"v")
THREE = batch(b"a", b"b", b"c")


def with_field(sent: bytes, at: int, value: bytes) -> bytes:
    """The batch with other bytes in its header, and the matching CRC."""
    changed = sent[:at] + value + sent[at + len(value) :]
    return changed[:17] + crc32c(changed[21:]).to_bytes(4) + changed[21:]


def counted(count: int) -> bytes:
    """The batch THREE, with another count in its header."""
    return with_field(with_field(THREE, 57, count.to_bytes(4)), 23, (count - 1).to_bytes(4))


REFUSED = {
    "null": (None, ErrorCode.INVALID_RECORD),
    "empty": (b"", ErrorCode.INVALID_RECORD),
    "two batches": (BATCH + BATCH, ErrorCode.INVALID_RECORD),
    "cut short": (BATCH[:-3], ErrorCode.INVALID_RECORD),
    "bytes flipped": (BATCH[:-1] + b"\x99", ErrorCode.CORRUPT_MESSAGE),
    "magic 1": (BATCH[:16] + b"\1" + BATCH[17:], ErrorCode.INVALID_RECORD),
    "no magic": (b"x" * 80, ErrorCode.CORRUPT_MESSAGE),
    "base offset 77": (b"\0\0\0\0\0\0\0M" + BATCH[8:], ErrorCode.INVALID_RECORD),
    "control batch": (encode([Record(0, NOW_MS, b"k", b"v")], is_control=True), ErrorCode.INVALID_RECORD),
    "idempotent without sequence": (batch(producer=(5, 0, -1)), ErrorCode.INVALID_RECORD),
    "fewer records than there are": (counted(2), ErrorCode.INVALID_RECORD),
    "more records than there are": (counted(4), ErrorCode.INVALID_RECORD),
    "many more records": (counted(1_000_000_000), ErrorCode.INVALID_RECORD),
    "no records": (with_field(BATCH, 61, bytes(len(BATCH) - 61)), ErrorCode.INVALID_RECORD),
    "a gap in the offsets": (with_field(THREE, 23, (4).to_bytes(4)), ErrorCode.INVALID_RECORD),
    "gzip that is none": (with_field(BATCH, 21, b"\0\1"), ErrorCode.UNKNOWN_SERVER_ERROR),
    "zstd that is none": (with_field(BATCH, 21, b"\0\4"), ErrorCode.UNKNOWN_SERVER_ERROR),
    "unknown codec": (with_field(BATCH, 21, b"\0\6"), ErrorCode.UNKNOWN_SERVER_ERROR),
}
REFUSED_AS_A_WHOLE = {
    "no magic": b"x" * 80,
    "too short": bytes(8) + (13).to_bytes(4) + bytes(13),
    "magic 3": BATCH[:16] + b"\3" + BATCH[17:],
}
UNKNOWN_CODEC = with_field(BATCH, 21, b"\0\6")
SHORT = bytes(8) + (20).to_bytes(4) + b"\0\0\0\0\2" + bytes(15)
"""A batch that ends within its header."""


def errors(broker: Broker, request: ProduceRequest, version: int = 9) -> list[int]:
    """The error of each partition of the first topic."""
    (topic,) = ask(produce, broker, request, version).responses
    return [answer.error_code for answer in topic.partition_responses]


@pytest.mark.parametrize(("records", "error"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_batch_is_refused_and_not_stored(
    broker: Broker, records: bytes | None, error: ErrorCode
) -> None:
    answer = send(broker, records)
    assert (answer.error_code, answer.base_offset) == (error, -1)
    assert answer.error_message  # Kafka gives none; a reason helps
    assert send(broker, batch()).base_offset == 0


def test_the_log_start_is_answered_for_whole_batches_that_are_refused(broker: Broker) -> None:
    whole = ("base offset 77", "control batch", "more records than there are", "gzip that is none")
    starts = {case: send(broker, records).log_start_offset for case, (records, _) in REFUSED.items()}
    assert {case: starts[case] for case in whole} == dict.fromkeys(whole, 0)
    torn = ("empty", "two batches", "cut short", "bytes flipped", "magic 1")
    assert {case: starts[case] for case in torn} == dict.fromkeys(torn, -1)


def test_the_rest_of_the_request_is_served(broker: Broker) -> None:
    for case in REFUSED.keys() - REFUSED_AS_A_WHOLE:
        records, error = REFUSED[case]
        assert errors(broker, request(records, BATCH)) == [error, ErrorCode.NONE]


@pytest.mark.parametrize("records", REFUSED_AS_A_WHOLE.values(), ids=REFUSED_AS_A_WHOLE)
def test_an_entry_without_a_readable_batch_fails_the_whole_request(broker: Broker, records: bytes) -> None:
    assert errors(broker, request(BATCH, records)) == [ErrorCode.CORRUPT_MESSAGE] * 2
    assert errors(broker, request(records, topic="nowhere")) == [ErrorCode.CORRUPT_MESSAGE]
    assert errors(broker, request(records, acks=5)) == [ErrorCode.CORRUPT_MESSAGE]


def test_after_a_transactional_batch_only_the_bad_entry_is_refused(broker: Broker) -> None:
    """Kafka looks for the first transactional batch, and no further."""
    transactional = encode([Record(0, NOW_MS, None, b"v")], is_transactional=True)
    records = (transactional, next(iter(REFUSED_AS_A_WHOLE.values())))
    answers = errors(broker, request(*records, transactional_id="t"))
    assert answers == [ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE]


@pytest.mark.parametrize(("records", "version"), [(SHORT, 9), (UNKNOWN_CODEC, 6)])
def test_an_entry_that_kafka_cannot_parse_fails_the_whole_request(
    broker: Broker, records: bytes, version: int
) -> None:
    answers = errors(broker, request(BATCH, records), version)
    assert answers == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    answers = errors(broker, request(records, topic="nowhere"), version)
    assert answers == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize("case", ["empty", "two batches", "magic 1"])
def test_an_entry_that_is_not_one_batch_is_refused_before_bad_acks(broker: Broker, case: str) -> None:
    records, error = REFUSED[case]
    assert errors(broker, request(records, acks=5)) == [error]
    assert errors(broker, request(records, acks=5, topic="nowhere")) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize("codec", list(Compression))
def test_compressed_records_are_counted_too(broker: Broker, codec: Compression) -> None:
    records = [Record(number, NOW_MS, b"k", bytes(size)) for number, size in enumerate((0, 100, 10_000))]
    good = encode(records, compression=codec)
    assert send(broker, good).error_code == ErrorCode.NONE
    for count in (2, 4):
        bad = with_field(with_field(good, 57, count.to_bytes(4)), 23, (count - 1).to_bytes(4))
        assert send(broker, bad).error_code == ErrorCode.INVALID_RECORD
    assert send(broker, good).base_offset == 3


def test_a_torn_end_behind_the_batch_is_left_out(broker: Broker) -> None:
    assert send(broker, BATCH + b"zz").error_code == ErrorCode.NONE
    stored = broker.log.read(broker.cluster.topics["t"].partitions[0].partition_no, 0, 1 << 20)
    assert len(stored) == len(BATCH)


def test_bad_acks_are_refused_after_the_topic_check(broker: Broker) -> None:
    assert send(broker, batch(), acks=1).error_code == ErrorCode.NONE
    assert send(broker, batch(), acks=2).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert send(broker, batch(), acks=-2).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert send(broker, batch(), acks=2, topic="no").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_zstd_needs_v7(broker: Broker) -> None:
    packed = encode([Record(0, NOW_MS, b"k", b"v")], compression=Compression.ZSTD)
    assert send(broker, packed, 6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert send(broker, packed, 7).error_code == ErrorCode.NONE


def test_the_internal_topic_is_not_for_producers(broker: Broker) -> None:
    answer = send(broker, batch(), topic="__consumer_offsets")
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    answer = send(broker, batch(), topic="__consumer_offsets", index=99)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_largest_batch_is_the_topics_else_the_brokers() -> None:
    broker = new_broker(message_max_bytes=200)
    create(broker, "t")
    create(broker, "wide", max_message_bytes="1000")
    big = batch(b"x" * 200)
    assert send(broker, big).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert send(broker, big, topic="wide").error_code == ErrorCode.NONE


@pytest.mark.parametrize("codec", Compression)
def test_the_largest_record_of_a_compressed_batch_is_the_topics(codec: Compression) -> None:
    """max.decompressed.message.bytes; Apache Kafka 4.4 counts what follows the record's length."""
    broker = new_broker()
    create(broker, "t", max_decompressed_message_bytes="100")
    refused = ErrorCode.NONE if codec is Compression.NONE else ErrorCode.INVALID_RECORD
    assert send(broker, batch(b"x" * 93, key=b"", codec=codec)).error_code == ErrorCode.NONE
    assert send(broker, batch(b"x" * 94, key=b"", codec=codec)).error_code == refused
    assert send(broker, batch(b"x", b"x" * 200, b"x", codec=codec)).error_code == refused


# ---- timestamps and keys


def marked(sent: bytes, max_timestamp: int = NOW_MS) -> bytes:
    """A batch that its producer has marked as LogAppendTime."""
    return with_field(with_field(sent, 21, b"\0\x08"), 35, max_timestamp.to_bytes(8, signed=True))


def test_a_topic_with_log_append_time_refuses_a_marked_batch() -> None:
    broker = new_broker()
    create(broker, "t", message_timestamp_type="LogAppendTime")
    answer = send(broker, marked(THREE))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == [0, 1, 2]


def test_other_topics_remove_the_mark_unless_there_is_no_timestamp(broker: Broker) -> None:
    assert send(broker, marked(THREE, -1)).error_code == ErrorCode.INVALID_TIMESTAMP
    assert send(broker, marked(THREE)).error_code == ErrorCode.NONE
    stored = decode_header(broker.log.read(broker.cluster.topics["t"].partitions[0].partition_no, 0, 1 << 20))
    assert stored.timestamp_type == 0


def test_log_append_time_is_answered_and_stored() -> None:
    broker = new_broker()
    create(broker, "t", message_timestamp_type="LogAppendTime")
    answer = send(broker, batch(b"a", b"b", at_ms=5))
    assert (answer.error_code, answer.log_append_time_ms) == (0, NOW_MS)
    stored = decode_header(broker.log.read(broker.cluster.topics["t"].partitions[0].partition_no, 0, 1 << 20))
    assert (stored.max_timestamp, stored.timestamp_type) == (NOW_MS, 1)


def test_with_log_append_time_the_producers_timestamps_do_not_matter() -> None:
    broker = new_broker()
    create(broker, "t", message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms="1000")
    assert send(broker, batch(at_ms=NOW_MS + 10 * 3_600_000)).error_code == ErrorCode.NONE
    assert send(broker, batch(at_ms=0)).error_code == ErrorCode.NONE


def test_the_brokers_timestamp_type_reaches_topics_without_their_own() -> None:
    broker = new_broker(log_message_timestamp_type="LogAppendTime")
    create(broker, "t")
    assert send(broker, batch(at_ms=5)).log_append_time_ms == NOW_MS


def test_a_record_more_than_an_hour_ahead_is_refused(broker: Broker) -> None:
    assert send(broker, batch(at_ms=NOW_MS + 3_600_000)).error_code == ErrorCode.NONE
    answer = send(broker, batch(b"a", b"b", at_ms=NOW_MS + 3_600_001))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert (answer.base_offset, answer.log_start_offset) == (-1, 0)
    assert [error.batch_index for error in answer.record_errors] == [0, 1]
    assert answer.error_message == "One or more records have been rejected due to invalid timestamp"


def test_how_old_a_record_may_be_is_the_topics(broker: Broker) -> None:
    assert send(broker, batch(at_ms=0)).error_code == ErrorCode.NONE
    create(broker, "fresh", message_timestamp_before_max_ms="1000")
    assert send(broker, batch(at_ms=NOW_MS - 1000), topic="fresh").error_code == ErrorCode.NONE
    assert send(broker, batch(at_ms=-1), topic="fresh").error_code == ErrorCode.NONE
    answer = send(broker, batch(at_ms=NOW_MS - 1001), topic="fresh")
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP


def test_a_missing_key_is_found_before_a_bad_timestamp(broker: Broker) -> None:
    create(broker, "c", cleanup_policy="compact")
    late = NOW_MS + 10 * 3_600_000
    both_in_one = encode([Record(0, late, None, b"v")])
    answer = send(broker, both_in_one, topic="c")
    assert (answer.error_code, len(answer.record_errors)) == (ErrorCode.INVALID_RECORD, 1)
    one_each = encode(
        [Record(0, NOW_MS, None, b"v"), Record(1, NOW_MS, b"k", b"v"), Record(2, late, b"k", b"")]
    )
    answer = send(broker, one_each, topic="c")
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == [0, 2]


def test_a_compacted_topic_needs_keys(broker: Broker) -> None:
    create(broker, "c", cleanup_policy="compact")
    assert send(broker, batch(key=b""), topic="c").error_code == ErrorCode.NONE
    answer = send(broker, batch(b"1", b"2", b"3", b"4", key=None), topic="c")
    assert answer.error_code == ErrorCode.INVALID_RECORD
    complaint = "Compacted topic cannot accept message without key in topic partition c-0"
    assert {error.batch_index_error_message for error in answer.record_errors} == {complaint}
    assert len(answer.record_errors) == 4
    assert answer.error_message.count(complaint) == 3


# ---- durability


def held_broker(store: HeldStore) -> Broker:
    broker = new_broker(store)
    made = broker.cluster.create_topics([NewTopic("t", num_partitions=2)])
    store.release_all()
    assert result(made) is not PENDING
    return broker


def test_the_answer_waits_until_all_partitions_are_durable() -> None:
    store = HeldStore()
    broker = held_broker(store)
    seen = collect(produce(broker, context(9), request(batch(), batch())))
    store.release()
    assert seen == []
    store.release()
    assert [answer.error_code for answer in seen[0].responses[0].partition_responses] == [0, 0]


def test_what_could_not_be_stored_is_a_storage_error_for_its_partition_alone() -> None:
    store = HeldStore()
    broker = held_broker(store)
    seen = collect(produce(broker, context(9), request(batch(), batch())))
    store.fail()
    store.release()
    answers = seen[0].responses[0].partition_responses
    assert [answer.error_code for answer in answers] == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
    assert [answer.base_offset for answer in answers] == [-1, 0]


def test_acks_0_is_never_answered_but_keeps_its_place_until_durable() -> None:
    store = HeldStore()
    broker = held_broker(store)
    answer = produce(broker, context(9), request(batch(), acks=0))
    seen = collect(answer)
    assert seen == []
    store.release()
    assert seen == [None]


def test_a_refusal_with_acks_0_closes_the_connection(broker: Broker) -> None:
    with pytest.raises(Refused, match="UNKNOWN_TOPIC_OR_PARTITION"):
        ask(produce, broker, request(batch(), topic="nope", acks=0), 9)
    with pytest.raises(Refused, match="CORRUPT_MESSAGE"):
        ask(produce, broker, request(BATCH[:-1] + b"z", acks=0), 9)


# ---- idempotent producers


def test_a_repeated_batch_is_answered_with_its_first_offset_and_not_stored_again(broker: Broker) -> None:
    first = batch(b"a", b"b", producer=(7, 0, 0))
    assert send(broker, first).base_offset == 0
    again = send(broker, first)
    assert (again.error_code, again.base_offset, again.log_start_offset) == (ErrorCode.NONE, 0, 0)
    assert again.log_append_time_ms == NOW_MS  # Kafka answers a repeated batch with the batch's own timestamp
    assert send(broker, batch(producer=(7, 0, 2))).base_offset == 2


def test_sequences_are_counted_for_each_partition(broker: Broker) -> None:
    assert send(broker, batch(producer=(7, 0, 0))).error_code == ErrorCode.NONE
    assert send(broker, batch(producer=(7, 0, 0)), index=1).base_offset == 0
    gap = send(broker, batch(producer=(7, 0, 2)))
    assert (gap.error_code, gap.log_start_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)
    assert send(broker, batch(producer=(7, -1, 0))).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_repeated_batch_is_not_acknowledged_before_its_original_is_durable() -> None:
    store = HeldStore()
    broker = held_broker(store)
    records = batch(producer=(7, 0, 0))
    original = collect(produce(broker, context(9), request(records)))
    repeated = collect(produce(broker, context(9), request(records)))
    assert (original, repeated, len(store.writes)) == ([], [], 1)
    store.release()
    answers = [seen[0].responses[0].partition_responses[0] for seen in (original, repeated)]
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, 0), (0, 0)]


def test_a_repeated_batch_fails_with_its_original_and_may_then_be_sent_again() -> None:
    store = HeldStore()
    broker = held_broker(store)
    records = batch(producer=(7, 0, 0))
    answers = [collect(produce(broker, context(9), request(records))) for _ in range(2)]
    store.fail()
    for seen in answers:
        assert seen[0].responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    third = collect(produce(broker, context(9), request(records)))
    store.release()
    assert third[0].responses[0].partition_responses[0].error_code == ErrorCode.NONE


def test_after_a_failed_append_nothing_is_accepted_out_of_order() -> None:
    """Batches 0 and 1 are in flight and 0 fails, so 1 is lost too: 2 comes too early."""
    store = HeldStore()
    broker = held_broker(store)
    on_their_way = [
        collect(produce(broker, context(9), request(batch(producer=(7, 0, sequence))))) for sequence in (0, 1)
    ]
    store.fail()
    early = collect(produce(broker, context(9), request(batch(producer=(7, 0, 2)))))
    assert early[0].responses[0].partition_responses[0].error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    store.fail()
    assert [len(seen) for seen in on_their_way] == [1, 1]
    again = collect(produce(broker, context(9), request(batch(producer=(7, 0, 0)))))
    store.release()
    assert again[0].responses[0].partition_responses[0].base_offset == 0


def test_the_log_remembers_the_producers_over_a_restart(broker: Broker) -> None:
    for sequence in range(7):
        send(broker, batch(producer=(7, 1, sequence)))
    send(broker, batch(b"not idempotent"))
    restarted = replace(broker, producers=ProducerAppends(broker.log, broker.config))
    assert send(restarted, batch(producer=(7, 1, 6))).base_offset == 6
    assert send(restarted, batch(producer=(7, 1, 2))).base_offset == 2
    too_old = send(restarted, batch(producer=(7, 1, 1)))
    assert too_old.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(restarted, batch(producer=(7, 0, 7))).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(restarted, batch(producer=(7, 1, 7))).base_offset == 8


def test_silent_producers_are_forgotten(broker: Broker) -> None:
    minute_ms, day_ms = 60 * 1000, 24 * 60 * 60 * 1000
    send(broker, batch(producer=(7, 0, 0)))
    send(broker, batch(producer=(8, 0, 0), at_ms=NOW_MS + 20 * minute_ms))
    advance(broker, day_ms - 1000)
    assert send(broker, batch(producer=(7, 0, 5))).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    advance(broker, 9 * minute_ms)
    assert send(broker, batch(producer=(7, 0, 5))).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    advance(broker, 2 * minute_ms)
    assert send(broker, batch(producer=(7, 0, 5))).error_code == ErrorCode.NONE
    assert send(broker, batch(producer=(8, 0, 5))).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_recreated_topic_starts_without_producers(broker: Broker) -> None:
    assert send(broker, batch(producer=(7, 0, 0))).error_code == ErrorCode.NONE
    ask(delete_topics, broker, DeleteTopicsRequest(topic_names=("t",), timeout_ms=1), 5)
    create(broker, "t")
    assert send(broker, batch(producer=(7, 0, 9))).base_offset == 0
