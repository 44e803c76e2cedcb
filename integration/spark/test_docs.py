"""The code of docs/spark.md runs in the tests' Spark session, against the test's server."""

from __future__ import annotations

import contextlib

import pytest
from kafka import TopicPartition
from pyspark.sql import SparkSession

from integration.support.clients import commit, new_consumer, new_producer
from integration.support.readme import SPARK_PAGE, block_with
from integration.support.server import Server


def test_a_streaming_job(spark: SparkSession, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshim.testing.spark.spark_session", lambda: contextlib.nullcontext(spark))
    exec(block_with("letters", server.bootstrap, SPARK_PAGE), {})


def test_the_coordinator_s_log(
    spark: SparkSession, own_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    producer = new_producer(own_server.bootstrap)
    producer.send("orders", b"1", partition=0).get(timeout=20)
    producer.close()
    consumer = new_consumer(own_server.bootstrap, group_id="billing")
    consumer.assign([TopicPartition("orders", 0)])
    commit(consumer, {TopicPartition("orders", 0): 0})
    consumer.close()
    exec(block_with("read_offsets_log", own_server.bootstrap, SPARK_PAGE), {"spark": spark})
    lag, generations = capsys.readouterr().out.split("\n\n")[:2]
    (row,) = ([cell.strip() for cell in line.split("|")] for line in lag.splitlines() if "billing" in line)
    assert row[1:7] == ["billing", "orders", "0", "0", "1", "1"]
    assert "generation" in generations
