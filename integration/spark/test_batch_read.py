"""Spark's batch source returns exactly what kafka-python produced."""

from __future__ import annotations

import json

import pytest
from kafka import TopicPartition
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from integration.spark.streams import DEPRECATED
from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_producer
from integration.support.handmade import Raw, produce, record_batch
from integration.support.server import Server

BASE_MS = 1_700_000_000_000
Row = tuple[int, int, "bytes | None", "bytes | None", "list[tuple[str, bytes | None]] | None", int, int]


class Source:
    """`spark.read.format("kafka")` with the options that all tests share."""

    def __init__(self, spark: SparkSession, server: Server) -> None:
        self._spark, self._bootstrap = spark, server.bootstrap

    def read(self, **options: object) -> DataFrame:
        reader = self._spark.read.format("kafka").option("kafka.bootstrap.servers", self._bootstrap)
        for name, value in options.items():
            reader = reader.option(name, json.dumps(value) if isinstance(value, dict) else value)
        return reader.load()

    def offsets(self, **options: object) -> list[tuple[int, int]]:
        rows = self.read(**options).select("partition", "offset").collect()
        return sorted((row.partition, row.offset) for row in rows)

    def rows(self, **options: object) -> list[Row]:
        frame = self.read(includeHeaders="true", **options).selectExpr(
            "partition",
            "offset",
            "key",
            "value",
            "headers",
            "unix_millis(timestamp) AS timestamp_ms",
            "timestampType AS timestamp_type",
        )
        return sorted(map(_row, frame.collect()), key=lambda row: row[:2])


def _row(row: object) -> Row:
    headers = None if row.headers is None else [(h.key, _bytes(h.value)) for h in row.headers]
    return (
        row.partition,
        row.offset,
        _bytes(row.key),
        _bytes(row.value),
        headers,
        row.timestamp_ms,
        row.timestamp_type,
    )


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


@pytest.fixture
def source(way: str, spark: SparkSession, server: Server) -> Source:
    return Source(spark, server)


def create(admin: Admin, topic: str, partitions: int, **configs: str) -> None:
    admin.create_topic(topic, partitions, {key.replace("_", "."): value for key, value in configs.items()})
    wait_until(lambda: len(admin.partitions(topic)) == partitions, 10, "the topic's leaders")


def test_every_column(source: Source, server: Server, admin: Admin, topic: str) -> None:
    create(admin, topic, 3)
    sent = [
        (0, b"key", b"value", [("trace", b"1"), ("trace", b"2"), ("empty", b"")]),
        (1, None, b"no key", []),
        (1, b"tombstone", None, []),
        (2, b"k", b"v", [("only one", b"header")]),
        (0, b"", b"", []),
        (2, bytes(range(256)), bytes(range(256)) * 100, [("bytes", bytes(range(256)))]),
        (0, "schlüssel".encode(), "wért".encode(), [("ключ", "значение".encode())]),
    ]
    producer = new_producer(server.bootstrap)
    offsets = [0, 0, 0]
    expected: list[Row] = []
    for number, (partition, key, value, headers) in enumerate(sent):
        timestamp_ms = BASE_MS + 1001 * number
        producer.send(
            topic, value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
        ).get(timeout=20)
        expected.append((partition, offsets[partition], key, value, headers or None, timestamp_ms, 0))
        offsets[partition] += 1
    producer.close()
    assert source.rows(subscribe=topic) == sorted(expected, key=lambda row: row[:2])
    assert {row.topic for row in source.read(subscribe=topic).select("topic").collect()} == {topic}


def test_what_kafka_python_refuses_to_send(source: Source, server: Server, admin: Admin, topic: str) -> None:
    """Headers without a value, and a record with neither key nor value."""
    create(admin, topic, 1)
    headers = [("none", None), ("none", b""), ("none", None)]
    with Raw(server) as client:
        client.answer_to(produce(topic, record_batch(headers=headers, timestamp_ms=BASE_MS)))
        client.answer_to(produce(topic, record_batch(None, key=None, headers=(), timestamp_ms=BASE_MS)))
    assert source.rows(subscribe=topic) == [
        (0, 0, b"key", b"value", headers, BASE_MS, 0),
        (0, 1, None, None, None, BASE_MS, 0),
    ]


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_many_records_in_batches(
    source: Source, server: Server, admin: Admin, topic: str, codec: str | None
) -> None:
    """More than one poll and more than one batch for each partition, with each codec."""
    create(admin, topic, 3)
    producer = new_producer(server.bootstrap, compression_type=codec, linger_ms=20, batch_size=8_000)
    futures = [
        producer.send(topic, f"value {n}".encode(), key=str(n).encode(), timestamp_ms=BASE_MS + n)
        for n in range(3000)
    ]
    expected = sorted(
        (m.partition, m.offset, str(n).encode(), f"value {n}".encode(), None, BASE_MS + n, 0)
        for n, m in enumerate(future.get(timeout=20) for future in futures)
    )
    producer.close()
    assert source.rows(subscribe=topic) == expected


def test_log_append_time(source: Source, server: Server, admin: Admin, topic: str) -> None:
    create(admin, topic, 1, message_timestamp_type="LogAppendTime")
    producer = new_producer(server.bootstrap)
    metadata = producer.send(topic, b"now", timestamp_ms=BASE_MS).get(timeout=20)
    producer.close()
    assert metadata.timestamp > BASE_MS
    assert source.rows(subscribe=topic) == [(0, 0, None, b"now", None, metadata.timestamp, 1)]


@pytest.fixture
def numbered(server: Server, admin: Admin, topic: str) -> str:
    """Two partitions with offsets 0 to 9, at intervals of a second."""
    create(admin, topic, 2)
    producer = new_producer(server.bootstrap)
    for number in range(10):
        for partition in (0, 1):
            producer.send(topic, b"v", partition=partition, timestamp_ms=BASE_MS + 1000 * number)
        producer.flush()
    producer.close()
    return topic


def both(low: int, high: int) -> list[tuple[int, int]]:
    return [(partition, offset) for partition in (0, 1) for offset in range(low, high)]


def test_offsets_as_options(source: Source, numbered: str) -> None:
    earliest, latest = {"0": -2, "1": -2}, {"0": -1, "1": -1}
    assert source.offsets(subscribe=numbered) == both(0, 10)
    assert source.offsets(subscribe=numbered, startingOffsets="earliest", endingOffsets="latest") == both(
        0, 10
    )
    assert source.offsets(
        subscribe=numbered, startingOffsets={numbered: earliest}, endingOffsets={numbered: latest}
    ) == both(0, 10)
    assert source.offsets(
        subscribe=numbered,
        startingOffsets={numbered: {"0": 3, "1": 7}},
        endingOffsets={numbered: {"0": 5, "1": -1}},
    ) == [(0, 3), (0, 4), (1, 7), (1, 8), (1, 9)]
    assert source.offsets(assign={numbered: [1]}) == [(1, offset) for offset in range(10)]
    assert source.offsets(subscribePattern=f"{numbered}.*") == both(0, 10)


def test_timestamps_as_options(source: Source, numbered: str) -> None:
    assert source.offsets(subscribe=numbered, startingTimestamp=BASE_MS + 4000) == both(4, 10)
    assert source.offsets(subscribe=numbered, startingTimestamp=BASE_MS + 3001) == both(4, 10)
    assert source.offsets(subscribe=numbered, endingTimestamp=BASE_MS + 4000) == both(0, 4)
    assert source.offsets(
        subscribe=numbered,
        startingOffsetsByTimestamp={numbered: {"0": BASE_MS + 8000, "1": BASE_MS}},
        endingOffsetsByTimestamp={numbered: {"0": BASE_MS + 99_000, "1": BASE_MS + 2000}},
    ) == [(0, 8), (0, 9), (1, 0), (1, 1)]


def test_a_timestamp_after_the_last_record(source: Source, numbered: str) -> None:
    """ListOffsets answers -1, and Spark does what its strategy says."""
    late = {"subscribe": numbered, "startingTimestamp": BASE_MS + 99_000}
    with pytest.raises((PySparkException, Py4JJavaError), match="No offset matched"):
        source.offsets(**late, startingOffsetsByTimestampStrategy="error")
    assert source.offsets(**late, startingOffsetsByTimestampStrategy="latest") == []


def test_several_consumers_on_one_partition(source: Source, numbered: str) -> None:
    frame = source.read(subscribe=numbered, minPartitions=8)
    assert frame.rdd.getNumPartitions() >= 8
    assert source.offsets(subscribe=numbered, minPartitions=8) == both(0, 10)


def test_read_committed(source: Source, numbered: str) -> None:
    assert source.offsets(subscribe=numbered, **{"kafka.isolation.level": "read_committed"}) == both(0, 10)


def test_an_unknown_topic(source: Source, admin: Admin, topic: str, way: str) -> None:
    """Spark asks for it without creating it, and raises an error; a consumer that subscribes creates it."""
    if way == DEPRECATED:
        assert source.offsets(subscribe=topic) == []
    else:
        with pytest.raises(Py4JJavaError, match="UnknownTopicOrPartition"):
            source.offsets(subscribe=topic)
    assert (topic in admin.list_topics()) == (way == DEPRECATED)


def transact(server: Server, topic: str, numbers: range, *, commit: bool) -> None:
    producer = new_producer(server.bootstrap, transactional_id=topic, enable_idempotence=True)
    producer.init_transactions()
    producer.begin_transaction()
    for number in numbers:
        producer.send(topic, b"%d" % number, partition=0)
    producer.flush()
    (producer.commit_transaction if commit else producer.abort_transaction)()
    producer.close()


def test_transactions(source: Source, server: Server, admin: Admin, topic: str) -> None:
    """Each transaction ends with a marker, which takes an offset and is no record."""
    create(admin, topic, 1)
    transact(server, topic, range(3), commit=True)
    transact(server, topic, range(2), commit=False)
    transact(server, topic, range(1), commit=True)
    committed = [(0, 0), (0, 1), (0, 2), (0, 7)]
    assert source.offsets(subscribe=topic, **{"kafka.isolation.level": "read_committed"}) == committed
    assert source.offsets(subscribe=topic) == sorted([*committed, (0, 4), (0, 5)])
    only_aborted = {"startingOffsets": {topic: {"0": 4}}, "endingOffsets": {topic: {"0": 7}}}
    assert (
        source.offsets(subscribe=topic, **only_aborted, **{"kafka.isolation.level": "read_committed"}) == []
    )


def test_a_data_frame_is_read_anew_each_time(
    source: Source, server: Server, admin: Admin, topic: str
) -> None:
    """Each run looks for the ends anew: it reads what came later, and not what is gone."""
    create(admin, topic, 1)
    frame = source.read(subscribe=topic, startingOffsets="earliest", endingOffsets="latest")
    producer = new_producer(server.bootstrap)
    for number in range(4):
        producer.send(topic, b"%d" % number).get(timeout=20)
    assert frame.count() == 4
    producer.send(topic, b"4").get(timeout=20)
    producer.close()
    admin.client.delete_records({TopicPartition(topic, 0): 2})
    assert sorted(row.offset for row in frame.select("offset").collect()) == [2, 3, 4]


def test_offsets_that_are_gone(source: Source, server: Server, admin: Admin, topic: str) -> None:
    """An explicit start below the log's start: an error or, where data loss is allowed, a read from the log's
    start."""
    create(admin, topic, 1)
    producer = new_producer(server.bootstrap)
    for number in range(6):
        producer.send(topic, b"%d" % number).get(timeout=20)
    producer.close()
    admin.client.delete_records({TopicPartition(topic, 0): 3})
    start = {"subscribe": topic, "startingOffsets": {topic: {"0": 0}}}
    assert source.offsets(**start, failOnDataLoss="false") == [(0, 3), (0, 4), (0, 5)]
    with pytest.raises(Py4JJavaError, match=r"(?i)data may have been lost|data loss|out of range"):
        source.offsets(**start, failOnDataLoss="true")


def test_a_group_id_of_one_s_own(source: Source, numbered: str, admin: Admin, way: str) -> None:
    """With kafka.group.id, consumers that fetch records do not ask the coordinator; the one for offsets joins
    the group."""
    group = f"my-own-group-{way}"
    assert source.offsets(subscribe=numbered, **{"kafka.group.id": group}) == both(0, 10)
    assert (group in admin.list_groups()) == (way == DEPRECATED)


def test_which_option_wins(source: Source, numbered: str) -> None:
    """Offsets win over times of each partition, and those over a time for all."""
    for_all = {"startingTimestamp": BASE_MS + 8000, "endingTimestamp": BASE_MS + 9000}
    for_each = {
        "startingOffsetsByTimestamp": {numbered: {"0": BASE_MS + 5000, "1": BASE_MS + 5000}},
        "endingOffsetsByTimestamp": {numbered: {"0": BASE_MS + 7000, "1": BASE_MS + 7000}},
    }
    offsets = {
        "startingOffsets": {numbered: {"0": 1, "1": 1}},
        "endingOffsets": {numbered: {"0": 3, "1": 3}},
    }
    assert source.offsets(subscribe=numbered, **for_all, **for_each, **offsets) == both(8, 9)
    assert source.offsets(subscribe=numbered, **for_each, **offsets) == both(5, 7)
    assert source.offsets(subscribe=numbered, **offsets) == both(1, 3)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"startingOffsets": "latest"}, "starting.*latest"),
        ({"startingOffsets": {"t": {"0": -1}}}, "startingOffsets for t-0 can't be latest"),
        ({"endingOffsets": "earliest"}, "ending.*earliest"),
        ({"endingOffsets": {"t": {"0": -2}}}, "ending offset for t-0 can't be earliest"),
        ({"assign": {"t": [0]}}, "(?i)only one"),
        ({"subscribe": ""}, "(?i)no topics"),
        ({"kafka.auto.offset.reset": "latest"}, "auto.offset.reset"),
        ({"kafka.enable.auto.commit": "true"}, "enable.auto.commit"),
        ({"kafka.key.deserializer": "x"}, "deserializer"),
    ],
)
def test_bad_options(spark: SparkSession, server: Server, options: dict[str, object], why: str) -> None:
    with pytest.raises(Exception, match=why):
        Source(spark, server).offsets(**{"subscribe": "t"} | options)


def test_two_ways_through_one_partition(source: Source, server: Server, admin: Admin, topic: str) -> None:
    """Spark reuses consumers and the records they have fetched: another range of the same partition must not
    be mixed up with them, nor with an aborted transaction's records (SPARK-25495)."""
    create(admin, topic, 1)
    for turn in range(3):
        transact(server, topic, range(5), commit=turn != 1)  # offsets 6 * turn on, with a marker behind each
    committed = {"kafka.isolation.level": "read_committed"}

    def between(start: int, end: int) -> list[int]:
        ranges = {"startingOffsets": {topic: {"0": start}}, "endingOffsets": {topic: {"0": end}}}
        return [offset for _, offset in source.offsets(subscribe=topic, **ranges, **committed)]

    assert between(0, 3) == [0, 1, 2]
    assert between(3, 14) == [3, 4, 12, 13]
    assert between(5, 12) == []
    assert between(1, 18) == [1, 2, 3, 4, *range(12, 17)]
    both_ends = source.read(subscribe=topic, **committed)
    joined = both_ends.alias("a").join(both_ends.alias("b"), "offset").select("offset").collect()
    assert sorted(row.offset for row in joined) == [*range(5), *range(12, 17)]
