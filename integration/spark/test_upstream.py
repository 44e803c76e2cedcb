"""Spark through two kshim in front of three Apache Kafka nodes, of which kshim are killed by turns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming import StreamingQuery

from integration.apache_kafka.nodes import Nodes
from integration.spark.command import kshim
from integration.spark.streams import create
from integration.support.awaiting import wait_until
from integration.support.clients import (
    Admin,
    commit,
    count_records,
    new_consumer,
    new_producer,
    offset_and_metadata,
    poll_records,
    read_all,
)
from integration.support.server import Server, set_options
from integration.support.story import Feed
from kshim.spark import PipelineError, decode, latest_commits, read_offsets_log, rebalances
from kshim.spark.source import KSHIM_TOPIC, OFFSETS_TOPIC

PARTITIONS = 4
KILLS = 5
REPLICAS = 3
MORE_RECORDS = 200
"""So many are read while one kshim is away, and again when it is back."""
WITHIN_S = 120

Rows = list[tuple[int, int, str]]
"""(partition, offset, value)"""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, class_path: str) -> Iterator[Nodes]:
    replicated = ("offsets.topic.replication.factor", "default.replication.factor")
    options = set_options(dict.fromkeys(replicated, REPLICAS))
    nodes = Nodes(tmp_path_factory.mktemp("upstream"), REPLICAS, *options).start()
    yield nodes
    nodes.kill()


@pytest.fixture(scope="module")
def pair(nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    directory = tmp_path_factory.mktemp("kshim")
    servers = [Server(directory / f"kshim{number}", ["--upstream", nodes.bootstrap]) for number in (1, 2)]
    for server in servers:
        server.start()
    yield servers
    for server in servers:
        if server.running:
            server.kill()


@pytest.fixture
def bootstrap(pair: list[Server]) -> str:
    return ",".join(server.bootstrap for server in pair)


@pytest.fixture
def own_admin(bootstrap: str) -> Iterator[Admin]:
    admin = Admin(bootstrap)
    yield admin
    admin.close()


def stored(nodes: Nodes, topic: str) -> Rows:
    """The records that the upstream itself has."""
    records = read_all(nodes.bootstrap, topic, count_records(nodes.bootstrap, topic), WITHIN_S)
    return sorted((each.partition, each.offset, each.value.decode()) for each in records)


def reading(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr("partition", "offset", "CAST(value AS STRING) AS value")
    )


def rows_read(query: StreamingQuery) -> int:
    """The number of rows that a query has read so far; AssertionError if it has failed."""
    assert query.exception() is None, query.exception()
    return sum(progress["numInputRows"] for progress in query.recentProgress)


def test_queries_go_on_where_one_kshim_is_killed(
    spark: SparkSession, nodes: Nodes, pair: list[Server], bootstrap: str, topic: str, tmp_path: Path
) -> None:
    """Files and a second topic have each record once, while one of the two kshim is killed five times."""
    sink = f"{topic}-out"
    admin = Admin(bootstrap)
    for name in (topic, sink):
        admin.create_topic(name, PARTITIONS, replication_factor=REPLICAS)
    admin.close()
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10000")
    feed = Feed(bootstrap, topic, PARTITIONS)
    frame, files = reading(spark, bootstrap, topic), tmp_path / "files"
    to_files = (
        frame.writeStream.format("parquet")
        .option("path", str(files))
        .option("checkpointLocation", str(tmp_path / "checkpoint-files"))
        .start()
    )
    to_topic = (
        frame.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", sink)
        .option("checkpointLocation", str(tmp_path / "checkpoint-topic"))
        .start()
    )
    queries = (to_files, to_topic)

    def wait_more() -> None:
        wanted = [rows_read(query) + MORE_RECORDS for query in queries]
        wait_until(
            lambda: all(rows_read(query) >= rows for query, rows in zip(queries, wanted, strict=True)),
            WITHIN_S,
            lambda: f"{wanted} rows, have {[rows_read(query) for query in queries]}\n{pair[0].report()}",
        )

    try:
        wait_more()
        for number in range(KILLS):
            server = pair[number % 2]
            server.kill()
            wait_more()
            server.restart()
            wait_more()
        acknowledged = feed.stop(WITHIN_S)
        assert feed.errors == []
        there = stored(nodes, topic)
        assert {(p, o): value for p, o, value in there}.items() >= acknowledged.items()
        for query in queries:
            query.processAllAvailable()
    finally:
        feed.end()
        for query in queries:
            query.stop()
    assert sorted(map(tuple, spark.read.parquet(str(files)).collect())) == there
    assert sorted(value for _, _, value in stored(nodes, sink)) == sorted(value for _, _, value in there)


def test_batches_there_and_back(spark: SparkSession, bootstrap: str, own_admin: Admin, topic: str) -> None:
    create(own_admin, topic, PARTITIONS)
    rows = spark.range(1000).selectExpr("CAST(id AS STRING) AS key", "CAST(id * 10 AS STRING) AS value")
    rows.write.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", topic).save()
    found = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .load()
        .selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")
    )
    assert sorted(map(tuple, found.collect())) == sorted((str(n), str(10 * n)) for n in range(1000))


def test_the_pipeline_reads_the_groups_of_kshim(
    spark: SparkSession, nodes: Nodes, bootstrap: str, own_admin: Admin, topic: str
) -> None:
    """By default it reads them, through kshim and at the upstream, whose own log has the offsets, too."""
    create(own_admin, topic, 1)
    producer = new_producer(bootstrap)
    for number in range(10):
        producer.send(topic, b"%d" % number, partition=0)
    producer.close()
    group, partition = f"group-of-{topic}", TopicPartition(topic, 0)
    consumer = new_consumer(bootstrap, topic, group_id=group, client_id="till")
    poll_records(consumer, 1)
    commit(consumer, {partition: 4})
    consumer.close()
    with_exactly_once = new_producer(bootstrap, transactional_id=f"id-of-{topic}")
    with_exactly_once.init_transactions()
    with_exactly_once.begin_transaction()
    with_exactly_once.send_offsets_to_transaction({partition: offset_and_metadata(6)}, group)
    with_exactly_once.commit_transaction()
    with_exactly_once.close()
    upstream = new_consumer(nodes.bootstrap, group_id=group)
    wait_until(lambda: upstream.committed(partition) == 6, WITHIN_S, "the offset at the upstream")
    upstream.close()
    for at, log in ((bootstrap, None), (nodes.bootstrap, KSHIM_TOPIC), (nodes.bootstrap, OFFSETS_TOPIC)):
        rows = latest_commits(decode(read_offsets_log(spark, at, topic=log))).where(fn.col("group") == group)
        assert [(row.topic, row.partition, row.offset) for row in rows.collect()] == [(topic, 0, 6)], log
    rows = rebalances(decode(read_offsets_log(spark, bootstrap))).where(fn.col("group") == group)
    generations = sorted((row.generation, row.members) for row in rows.collect())
    # The consumer may join again when it sees the topic's partitions.
    assert (generations[0], generations[-1]) == ((1, 1), (len(generations), 0))
    with pytest.raises(PipelineError, match=r"has no topic nonsense: no group has ever been there"):
        read_offsets_log(spark, bootstrap, topic="nonsense")
    done = kshim("lag", "--bootstrap", bootstrap)
    assert (done.returncode, done.stderr) == (0, "")
    assert [group, topic, "0", "6", "10", "4"] in [row.split()[:6] for row in done.stdout.splitlines()]
