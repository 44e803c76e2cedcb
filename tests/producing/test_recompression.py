"""compression.type and min.insync.replicas, as Produce applies them. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from crc32c import crc32c

from kshim.answering import Broker
from kshim.api.produce import produce
from kshim.cluster import NewTopic
from kshim.cluster.leaders import stop_broker
from schemas.error_code import ErrorCode
from schemas.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from schemas.records.batch import Compression, Record, decode_header, encode, records, validate
from tests.api.harness import NOW_MS, ask, create, new_broker, result

RECORDS = [Record(n, NOW_MS + (n * 37) % 100, b"k%d" % n, b"v" * 100) for n in range(10)]
CRC_AT, ATTRIBUTES_AT, LAST_OFFSET_DELTA_AT, MAX_TIMESTAMP_AT, RECORDS_COUNT_AT = 17, 21, 23, 35, 57
CODECS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


def send(
    broker: Broker, batch: bytes, acks: int = -1, transactional_id: str | None = None
) -> PartitionProduceResponse:
    data = PartitionProduceData(index=0, records=memoryview(batch))
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=1000,
        topic_data=(TopicProduceData(name="t", partition_data=(data,)),),
    )
    answer = ask(produce, broker, request, 12)
    response = answer.responses[0].partition_responses[0]
    assert isinstance(response, PartitionProduceResponse)
    return response


def stored(broker: Broker, offset: int = 0) -> bytes:
    return broker.log.read(broker.cluster.topics["t"].partitions[0].partition_no, offset, 1)


@pytest.mark.parametrize("sent", Compression, ids=lambda codec: codec.name)
@pytest.mark.parametrize("configured", ["producer", *CODECS])
def test_a_batch_is_stored_as_the_topic_wants_it(configured: str, sent: Compression) -> None:
    broker = new_broker()
    create(broker, "t", compression_type=configured)
    batch = encode(RECORDS, compression=sent, producer_id=7, producer_epoch=1, base_sequence=0)
    assert send(broker, batch).error_code == 0
    found = stored(broker)
    wanted = CODECS.get(configured, sent)
    header = validate(memoryview(found))
    assert (header.compression, list(records(found))) == (wanted, RECORDS)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 0)
    before = decode_header(batch)
    assert (header.base_timestamp, header.max_timestamp) == (before.base_timestamp, before.max_timestamp)
    if wanted is sent:
        assert header.crc == before.crc  # it was not touched


def test_the_broker_gives_the_default() -> None:
    broker = new_broker(compression_type="zstd")
    create(broker, "t")
    send(broker, encode(RECORDS))
    assert decode_header(stored(broker)).compression is Compression.ZSTD


def test_the_level() -> None:
    sizes = []
    for level in ("1", "9"):
        broker = new_broker()
        create(broker, "t", compression_type="gzip", compression_gzip_level=level)
        send(broker, encode([Record(n, NOW_MS, None, b"%d, " % n * 50) for n in range(500)]))
        sizes.append(decode_header(stored(broker)).size)
    assert sizes[0] > sizes[1]


def test_the_limit_holds_for_what_is_stored() -> None:
    broker = new_broker()
    create(broker, "t", compression_type="uncompressed", max_message_bytes="500")
    batch = encode(RECORDS, compression=Compression.GZIP)
    assert len(batch) < 500
    assert send(broker, batch).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert stored(broker) == b""


@pytest.mark.parametrize("offsets", [(0, 0), (1, 0), (5, 9)])
def test_offsets_are_made_to_follow_each_other(offsets: tuple[int, int]) -> None:
    broker = new_broker()
    create(broker, "t", compression_type="gzip")
    odd = [Record(offset, NOW_MS + offset, b"k", b"v") for offset in offsets]
    assert send(broker, encode(odd, last_offset_delta=1)).error_code == 0
    assert [(it.offset, it.timestamp_ms) for it in records(stored(broker))] == [
        (0, NOW_MS + offsets[0]),
        (1, NOW_MS + offsets[1]),
    ]


def test_the_header_says_what_is_true_of_the_records() -> None:
    broker = new_broker()
    create(broker, "t", compression_type="gzip")
    sent = bytearray(encode(RECORDS))
    struct.pack_into(">h", sent, ATTRIBUTES_AT, 0x100)  # a bit without a meaning
    struct.pack_into(">q", sent, MAX_TIMESTAMP_AT, NOW_MS)  # not the largest timestamp
    struct.pack_into(">I", sent, CRC_AT, crc32c(sent[ATTRIBUTES_AT:]))
    assert send(broker, bytes(sent)).error_code == 0
    header = decode_header(stored(broker))
    assert (header.attributes, header.max_timestamp) == (1, max(it.timestamp_ms for it in RECORDS))


def test_a_timestamp_before_1970_cannot_be_written() -> None:
    """A batch that is stored as it came may have such a timestamp."""
    broker = new_broker()
    create(broker, "t", compression_type="gzip")
    before = [Record(0, -5, b"k", b"v")]
    assert send(broker, encode(before)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert send(broker, encode(before, compression=Compression.GZIP)).error_code == 0
    assert list(records(stored(broker))) == before


@pytest.mark.parametrize(
    "producer",
    [{"producer_id": 7, "base_sequence": 0}, {"producer_id": -2}, {"is_transactional": True}],
    ids=["no epoch", "an odd id", "no id"],
)
def test_a_producer_without_epoch_or_id_cannot_be_written(producer: dict[str, Any]) -> None:
    broker = new_broker()
    create(broker, "t", compression_type="gzip")
    answer = send(broker, encode(RECORDS, **producer), transactional_id="x")
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert stored(broker) == b""


def test_records_that_cannot_be_decoded_are_refused() -> None:
    broker = new_broker()
    create(broker, "t", compression_type="gzip")
    bad = bytearray(encode(RECORDS))
    struct.pack_into(">i", bad, LAST_OFFSET_DELTA_AT, 10)  # one more than it has
    struct.pack_into(">i", bad, RECORDS_COUNT_AT, 11)
    struct.pack_into(">I", bad, CRC_AT, crc32c(bad[ATTRIBUTES_AT:]))
    assert send(broker, bytes(bad)).error_code == ErrorCode.INVALID_RECORD
    assert stored(broker) == b""


# ---- min.insync.replicas


@pytest.mark.parametrize(
    ("min_isr", "in_sync", "acks", "error"),
    [
        ("2", 1, -1, ErrorCode.NOT_ENOUGH_REPLICAS),
        ("2", 1, 1, ErrorCode.NONE),
        ("2", 2, -1, ErrorCode.NONE),
        ("9", 3, -1, ErrorCode.NONE),  # there are only three replicas
        ("9", 2, -1, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
def test_acks_all_needs_enough_in_sync_replicas(
    min_isr: str, in_sync: int, acks: int, error: ErrorCode
) -> None:
    broker = new_broker(brokers=3)
    new = NewTopic("t", assignments=[(0, (1, 2, 3))], configs={"min.insync.replicas": min_isr})
    result(broker.cluster.create_topics([new]))
    for node_id in (3, 2)[: 3 - in_sync]:
        result(stop_broker(broker.cluster, node_id))
    assert len(broker.cluster.topics["t"].partitions[0].isr) == in_sync
    assert send(broker, encode(RECORDS), acks).error_code == error
