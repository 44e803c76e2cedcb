"""The pipeline over a real group's log gives the same answers as a plain computation over its records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kafka import TopicPartition
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from integration.spark.command import call, kshim
from integration.support.clients import Admin, commit, new_consumer, new_producer, poll_records, read_from
from integration.support.server import Server
from kshim.cli.pipeline_questions import _first
from kshim.spark import (
    PipelineError,
    decode,
    flapping,
    group_lag,
    latest_commits,
    read_end_offsets,
    read_head_times,
    read_offsets_log,
    rebalances,
    restore,
    snapshot,
    stuck,
)
from kshim.spark.generations import generations
from kshim.spark.kept import KeptTable
from kshim.spark.rebalancing import shown
from kshim.spark.rows import GROUP as GROUP_ROWS
from kshim.spark.rows import OFFSET
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    OffsetCommitKey,
    decode_key,
    decode_value,
)

TOPIC, GROUP, IDLE = "orders", "billing", "idle"
CLIENT_IDS = ("till-1", "till-2", "till-2", "till-2")


class Story(NamedTuple):
    """A server on which four consumers of GROUP have come and gone, one after the other."""

    server: Server
    rows: DataFrame


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    server = Server(tmp_path_factory.mktemp("pipeline") / "data").start()
    admin = Admin(server.bootstrap)
    admin.create_topic(TOPIC, 2)
    producer = new_producer(server.bootstrap)
    for number in range(100):
        producer.send(TOPIC, b"%d" % number, partition=number % 2, timestamp_ms=1_700_000_000_000 + number)
    producer.close()
    for count, client_id in enumerate(CLIENT_IDS, 1):
        consumer = new_consumer(server.bootstrap, TOPIC, group_id=GROUP, client_id=client_id)
        poll_records(consumer, 1)
        commit(consumer, {TopicPartition(TOPIC, 0): 10 * count, TopicPartition(TOPIC, 1): 7})
        consumer.close()
    idle = new_consumer(server.bootstrap, group_id=IDLE)
    idle.assign([TopicPartition(TOPIC, 0)])
    commit(idle, {TopicPartition(TOPIC, 0): 50})
    idle.close()
    admin.close()
    yield Story(server, decode(read_offsets_log(spark, server.bootstrap)).cache())
    assert server.stop() == 0


def plain(server: Server) -> list[tuple[Any, Any]]:
    """The log, read with kafka-python and decoded with the schemas: (key, value) in order."""
    consumer = new_consumer(server.bootstrap)
    ends = consumer.end_offsets([TopicPartition("__consumer_offsets", p) for p in range(50)])
    records = read_from(consumer, "__consumer_offsets", sum(ends.values()))
    consumer.close()
    return [(key := decode_key(record.key), decode_value(key, record.value)) for record in records]


def test_latest_commits(story: Story) -> None:
    wanted: dict[tuple[str, str, int], int] = {}
    for key, value in plain(story.server):
        if isinstance(key, OffsetCommitKey):
            wanted[key.group, key.topic, key.partition] = value.offset
    rows = latest_commits(story.rows).collect()
    assert {(row.group, row.topic, row.partition): row.offset for row in rows} == wanted
    assert wanted == {(GROUP, TOPIC, 0): 40, (GROUP, TOPIC, 1): 7, (IDLE, TOPIC, 0): 50}
    (standing,) = (row for row in rows if row.partition == 1)
    assert standing.since < standing.commit_time  # it committed the same offset four times


@pytest.mark.parametrize("kind", [OFFSET, GROUP_ROWS])
def test_rows_of_one_kind_are_the_same(spark: SparkSession, story: Story, kind: str) -> None:
    only = decode(read_offsets_log(spark, story.server.bootstrap), kind)
    whole = story.rows.where(fn.col("kind") == kind).select(only.columns)
    assert sorted(map(str, only.collect())) == sorted(map(str, whole.collect()))
    assert only.count() > 0


def test_latest_commits_in_parts(story: Story) -> None:
    """The known table and the newer records together give what the whole log gives."""
    whole = sorted(latest_commits(story.rows).collect())
    for cut in (5, 12):
        known = latest_commits(story.rows.where(fn.col("log_offset") < cut))
        later = latest_commits(story.rows.where(fn.col("log_offset") >= cut), known)
        assert sorted(later.collect()) == whole


def test_lag(spark: SparkSession, story: Story) -> None:
    commits = latest_commits(story.rows)
    ends = read_end_offsets(spark, story.server.bootstrap, commits)
    heads = read_head_times(spark, story.server.bootstrap, group_lag(commits, ends))
    now = fn.timestamp_millis(fn.lit(1_700_000_010_000))
    found = group_lag(commits, ends, heads, now).collect()
    rows = [(row.group, row.partition, row.lag, round(row.lag_seconds, 3), row.beyond_end) for row in found]
    assert sorted(rows) == [
        (GROUP, 0, 10, 9.92, False),  # the next record is number 80, sent 80 ms after the beginning
        (GROUP, 1, 43, 9.985, False),  # number 15
        (IDLE, 0, 0, 0.0, False),
    ]


def test_lag_without_an_end(spark: SparkSession, story: Story) -> None:
    """A deleted topic has no lag; a commit beyond the end is reported, and has none either."""
    ends = spark.createDataFrame([(TOPIC, 0, 39)], "topic string, partition int, end_offset long")
    found = group_lag(latest_commits(story.rows), ends).collect()
    assert {(row.group, row.partition): (row.lag, row.beyond_end) for row in found} == {
        (GROUP, 0): (0, True),
        (GROUP, 1): (None, None),
        (IDLE, 0): (0, True),
    }


def test_stuck(spark: SparkSession, story: Story) -> None:
    commits = latest_commits(story.rows)
    ends = read_end_offsets(spark, story.server.bootstrap, commits)
    times = {(row.group, row.partition): row.since for row in commits.collect()}
    ten_s_later = fn.lit(times[GROUP, 1]) + fn.expr("INTERVAL 10 SECONDS")
    found = stuck(group_lag(commits, ends), 10, ten_s_later).collect()
    assert [(row.group, row.partition, row.stuck_seconds) for row in found] == [(GROUP, 1, 10.0)]


def plain_generations(server: Server) -> list[tuple[int, int, list[str], list[str]]]:
    """GROUP's generations: generation, members, client ids that joined and that left."""
    found, before = [], {}
    for key, value in plain(server):
        if key == GroupMetadataKey(group=GROUP) and value.generation:
            now = {member.member_id: member.client_id for member in value.members}
            joined = sorted(now[it] for it in now.keys() - before.keys())
            left = sorted(before[it] for it in before.keys() - now.keys())
            found.append((value.generation, len(now), joined, left))
            before = now
    return found


def shape(row: Row) -> tuple[int, int, list[str], list[str]]:
    joined, left = (sorted(client.client_id for client in clients) for clients in (row.joined, row.left))
    return row.generation, row.members, joined, left


def test_rebalances(story: Story) -> None:
    rows = rebalances(story.rows).where(fn.col("group") == GROUP).orderBy("generation").collect()
    assert [shape(row) for row in rows] == plain_generations(story.server)
    assert len(rows) >= 2 * len(CLIENT_IDS)  # each came, and each left
    assert [row.ended for row in rows] == [*(row.began for row in rows[1:]), None]
    assert {row.leader.rpartition("-")[0][:6] for row in rows if row.members} == {"till-1", "till-2"}


def test_rebalances_of_a_stream(spark: SparkSession, story: Story, tmp_path: Path) -> None:
    """However micro-batches cut the log, the table equals the batch's, and each change was reported."""
    told: list[Row] = []

    def merge(known: DataFrame | None, batch: DataFrame) -> DataFrame:
        return generations(batch, known)

    log = read_offsets_log(spark, story.server.bootstrap, stream=True, options={"maxOffsetsPerTrigger": "6"})
    table = KeptTable(spark, tmp_path.as_uri(), merge, lambda changed: told.extend(shown(changed).collect()))
    query = table.following(decode(log)).trigger(availableNow=True).start()
    assert query.awaitTermination(90)
    assert query.exception() is None
    kept: list[Row] = []
    table.read(lambda rows: kept.extend(shown(rows).collect()))
    whole = rebalances(story.rows).collect()
    assert sorted(map(str, kept)) == sorted(map(str, whole))
    assert {(row.group, row.generation) for row in told} == {(row.group, row.generation) for row in whole}
    assert len(told) > len(whole)  # some began in one micro-batch and ended in another


def test_a_kept_table_goes_on_after_a_restart(
    spark: SparkSession, own_server: Server, tmp_path: Path
) -> None:
    """A new process on the same directory knows what the first one read, and reads only newer records."""

    def committed(group: str, offset: int) -> None:
        consumer = new_consumer(own_server.bootstrap, group_id=group)
        consumer.assign([TopicPartition(TOPIC, 0)])
        commit(consumer, {TopicPartition(TOPIC, 0): offset})
        consumer.close()

    def follow() -> tuple[dict[str, int], int]:
        """The table after this run, and how many records it read."""
        log = read_offsets_log(spark, own_server.bootstrap, stream=True)
        table = KeptTable(spark, tmp_path.as_uri(), lambda known, batch: latest_commits(batch, known))
        query = table.following(decode(log)).trigger(availableNow=True).start()
        assert query.awaitTermination(90)
        assert query.exception() is None
        found: dict[str, int] = {}
        table.read(lambda rows: found.update({row.group: row.offset for row in rows.collect()}))
        return found, sum(progress["numInputRows"] for progress in query.recentProgress)

    admin = Admin(own_server.bootstrap)
    admin.create_topic(TOPIC, 1)
    admin.close()
    committed(GROUP, 1)
    committed(IDLE, 5)
    assert follow() == ({GROUP: 1, IDLE: 5}, 2)
    committed(GROUP, 3)
    assert follow() == ({GROUP: 3, IDLE: 5}, 1)


def test_flapping(story: Story) -> None:
    times = len(plain_generations(story.server))
    found = flapping(rebalances(story.rows), "1 day", times).collect()
    assert [(row.group, row.rebalances, row.client_id) for row in found] == [(GROUP, times, "till-2")]
    assert flapping(rebalances(story.rows), "1 day", times + 1).collect() == []


def test_snapshot_and_restore(spark: SparkSession, story: Story, own_server: Server, tmp_path: Path) -> None:
    path = (tmp_path / "offsets.parquet").as_uri()
    snapshot(latest_commits(story.rows), path)
    admin = Admin(own_server.bootstrap)
    admin.create_topic(TOPIC, 2)
    dry = restore(spark, path, own_server.bootstrap).collect()
    assert {(row.group, row.was, row.outcome) for row in dry} == {
        (GROUP, None, "would be restored"),
        (IDLE, None, "would be restored"),
    }
    done = restore(spark, path, own_server.bootstrap, dry_run=False).collect()
    assert {row.outcome for row in done} == {"restored"}
    assert admin.group_offsets(GROUP) == {(TOPIC, 0): 40, (TOPIC, 1): 7}
    assert admin.group_offsets(IDLE) == {(TOPIC, 0): 50}
    again = restore(spark, path, own_server.bootstrap, dry_run=False).collect()
    assert {row.outcome for row in again} == {"same"}
    assert {(row.was, row.offset) for row in again} == {(40, 40), (7, 7), (50, 50)}
    admin.close()


def test_a_group_with_members_is_not_restored(
    spark: SparkSession, story: Story, own_server: Server, tmp_path: Path
) -> None:
    path = (tmp_path / "offsets.parquet").as_uri()
    snapshot(latest_commits(story.rows), path)
    admin = Admin(own_server.bootstrap)
    admin.create_topic(TOPIC, 2)
    admin.close()
    producer = new_producer(own_server.bootstrap)
    producer.send(TOPIC, b"1").get(timeout=20)
    producer.close()
    member = new_consumer(own_server.bootstrap, TOPIC, group_id=GROUP)
    poll_records(member, 1)
    outcome = {
        (row.group, row.outcome)
        for row in restore(spark, path, own_server.bootstrap, dry_run=False).collect()
    }
    member.close()
    assert outcome == {(GROUP, "UnknownMemberId"), (IDLE, "restored")}


def test_nobody_there(spark: SparkSession) -> None:
    with pytest.raises(PipelineError, match=r"no answer from Kafka at 127.0.0.1:1: .*expected HOST:PORT"):
        read_offsets_log(spark, "127.0.0.1:1")


def test_no_snapshot(spark: SparkSession, story: Story, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="no snapshot there"):
        restore(spark, str(tmp_path / "none"), story.server.bootstrap)
    other = (tmp_path / "other").as_uri()
    spark.range(1).write.parquet(other)
    with pytest.raises(PipelineError, match="no snapshot, it has no column"):
        restore(spark, other, story.server.bootstrap)


# ---- the command


def test_lag_on_the_command_line(story: Story) -> None:
    done = kshim("lag", "--bootstrap", story.server.bootstrap)
    assert (done.returncode, done.stderr) == (0, "")
    titles, *rows = [line.split() for line in done.stdout.splitlines()]
    assert titles[:6] == ["group", "topic", "partition", "offset", "end_offset", "lag"]
    assert [row[:6] for row in rows] == [
        [GROUP, TOPIC, "1", "7", "50", "43"],
        [GROUP, TOPIC, "0", "40", "50", "10"],
        [IDLE, TOPIC, "0", "50", "50", "0"],
    ]


def test_one_group_on_the_command_line(story: Story) -> None:
    done = kshim("lag", "--bootstrap", story.server.bootstrap, "--group", IDLE)
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == [IDLE]


def test_the_console_says_that_there_are_more_rows(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(_first(spark.range(1000))) == 1000
    assert capsys.readouterr().err == ""
    assert len(_first(spark.range(1001))) == 1000
    said = "only the first 1,000 rows are shown: --group shows fewer, --out parquet:DIR writes all"
    assert said in capsys.readouterr().err


def test_nobody_there_on_the_command_line() -> None:
    done = call("flapping", "--bootstrap", "127.0.0.1:1")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("kshim pipeline: no answer from Kafka at 127.0.0.1:1: ")
