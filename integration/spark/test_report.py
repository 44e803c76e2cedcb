"""The report holds what the groups did: counted by hand here, by Spark there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from integration.spark.command import call, kshim
from integration.support.clients import Admin, commit, new_consumer, new_producer, poll_records
from integration.support.server import Server
from kshim.spark.cluster import ends_at
from kshim.spark.report.gather import gather
from kshim.spark.report.history import commit_counts, commits_by_step, lag_by_step, latest_of
from kshim.spark.report.page import html
from kshim.spark.report.values import Asked, Steps
from kshim.spark.source import OFFSETS_TOPIC

T = 1_700_000_000_000
STEPS = Steps(T, T + 5000, 5)
TOPIC, GROUP, IDLE = "orders", "billing", "idle"
VISITS = 4
ASKED = Asked(0.0, "10 minutes", 2 * VISITS)


# ---- steps


def rows(spark: SparkSession, *commits: tuple[str, int, int | None, int]) -> DataFrame:
    """Rows as of `decode`, for (group, partition, offset, ms after T); an offset of None is a deletion."""
    made = [
        ("offset", group, TOPIC, partition, offset, -1, "", offset is None, 7, place, ms)
        for place, (group, partition, offset, ms) in enumerate(commits)
    ]
    schema = (
        "kind string, `group` string, topic string, partition int, offset long, leader_epoch int, "
        "metadata string, tombstone boolean, log_partition int, log_offset long, ms long"
    )
    at = fn.timestamp_millis(fn.col("ms") + T)
    frame = spark.createDataFrame(made, schema).withColumn("log_time", at)
    return frame.withColumn("commit_time", fn.when(~fn.col("tombstone"), at))


def by_group(frame: DataFrame, value: str) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for row in frame.collect():
        found.setdefault(row.group, {})[row.step] = row[value]
    return found


def ends(spark: SparkSession, *of_partition: list[int]) -> DataFrame:
    made = [(TOPIC, partition, offsets) for partition, offsets in enumerate(of_partition)]
    return spark.createDataFrame(made, "topic string, partition int, ends array<long>")


def test_lag_over_time(spark: SparkSession) -> None:
    """A commit holds until the next one; before a partition's first commit it has no lag; none is below 0."""
    log = rows(
        spark, ("a", 0, 10, 0), ("a", 0, 20, 900), ("a", 1, 5, 1500), ("a", 0, 90, 4100), ("b", 0, 0, 2000)
    )
    lag = lag_by_step(commits_by_step(log, STEPS), ends(spark, [30, 40, 50, 60, 70], [1, 6, 6, 9, 9]), STEPS)
    assert by_group(lag, "lag") == {
        "a": {0: 10, 1: 20 + 1, 2: 30 + 1, 3: 40 + 4, 4: 0 + 4},
        "b": {2: 50, 3: 60, 4: 70},
    }


def test_a_deleted_offset_has_no_lag(spark: SparkSession) -> None:
    log = rows(spark, ("a", 0, 10, 0), ("a", 0, None, 2000), ("a", 0, 15, 4000))
    lag = lag_by_step(commits_by_step(log, STEPS), ends(spark, [20] * 5), STEPS)
    assert by_group(lag, "lag") == {"a": {0: 10, 1: 10, 4: 5}}


def test_what_is_older_counts_as_known_at_the_beginning(spark: SparkSession) -> None:
    """With --last, a commit from before is where the group stood, but is not one of the commits counted."""
    log = rows(spark, ("a", 0, 10, -9000), ("a", 0, 12, 3000), ("a", 0, 14, 3100))
    table = commits_by_step(log, STEPS)
    assert by_group(lag_by_step(table, ends(spark, [20] * 5), STEPS), "lag") == {
        "a": {0: 10, 1: 10, 2: 10, 3: 6, 4: 6}
    }
    assert by_group(commit_counts(table), "commits") == {"a": {0: 0, 3: 2}}


def test_the_latest_commit_and_since_when(spark: SparkSession) -> None:
    log = rows(
        spark, ("a", 0, 10, 0), ("a", 0, 12, 1000), ("a", 0, 12, 3000), ("b", 0, 1, 0), ("b", 0, None, 4000)
    )
    (row,) = latest_of(commits_by_step(log, STEPS)).collect()
    assert (row.group, row.offset) == ("a", 12)
    assert (row.commit_time - row.since).total_seconds() == 2.0


# ---- a server


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Consumers of GROUP come and go, and stay behind; IDLE is at the end."""
    server = Server(tmp_path_factory.mktemp("report") / "data").start()
    admin = Admin(server.bootstrap)
    admin.create_topic(TOPIC, 1)
    admin.close()
    producer = new_producer(server.bootstrap)
    for number in range(50):
        producer.send(TOPIC, b"%d" % number, timestamp_ms=T + number)
    producer.close()
    for offset in range(VISITS):
        consumer = new_consumer(server.bootstrap, TOPIC, group_id=GROUP, client_id="till-1")
        poll_records(consumer, 1)
        commit(consumer, {TopicPartition(TOPIC, 0): offset})
        consumer.close()
    idle = new_consumer(server.bootstrap, group_id=IDLE)
    idle.assign([TopicPartition(TOPIC, 0)])
    commit(idle, {TopicPartition(TOPIC, 0): 50})
    idle.close()
    yield server
    assert server.stop() == 0


def test_ends_over_time(story: Server) -> None:
    found = ends_at(story.bootstrap, [TOPIC, "none"], [T, T + 1, T + 20, T + 1000])
    assert found == {(TOPIC, 0): [0, 1, 20, 50]}


def test_a_report(spark: SparkSession, story: Server) -> None:
    told: list[str] = []
    made = gather(spark, story.bootstrap, OFFSETS_TOPIC, ASKED, None, told.append)
    groups = {group.name: group for group in made.groups}
    assert groups.keys() == {GROUP, IDLE}
    last = made.steps.number - 1
    assert (groups[GROUP].lag[last], groups[IDLE].lag[last]) == (50 - (VISITS - 1), 0)
    assert (sum(groups[GROUP].commits.values()), sum(groups[IDLE].commits.values())) == (VISITS, 1)
    assert (made.commits, made.group_count) == (VISITS + 1, 2)
    rebalanced = sum(mark.times for mark in groups[GROUP].marks)
    assert rebalanced == made.rebalances == len(made.latest) >= 2 * VISITS
    assert [(row.group, row.lag, row.stuck_seconds is not None) for row in made.behind] == [
        (GROUP, 50 - (VISITS - 1), True),
        (IDLE, 0, False),
    ]
    assert made.behind[0].lag_seconds == pytest.approx(time.time() - T / 1000, abs=600)
    assert [(row.group, row.rebalances) for row in made.flapping] == [(GROUP, rebalanced)]
    assert made.latest[0].left[0].startswith("till-1@")
    page = html(made)
    assert 'billing</b> <span class="wrong">is stuck' in page
    assert len(told) > 2


def test_a_report_on_the_command_line(story: Server, tmp_path: Path) -> None:
    done = kshim(
        "report", "--bootstrap", story.bootstrap, "--out", str(tmp_path / "a" / "b"), "--last", "3600"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{tmp_path / 'a' / 'b' / 'index.html'}\n"
    assert GROUP in (tmp_path / "a" / "b" / "index.html").read_text()


def test_a_report_that_cannot_be_written(story: Server, tmp_path: Path) -> None:
    """It is said before Spark starts."""
    (tmp_path / "file").touch()
    done = call("report", "--bootstrap", story.bootstrap, "--out", str(tmp_path / "file"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"kshim pipeline: --out {tmp_path / 'file'}: cannot write there: File exists\n"
