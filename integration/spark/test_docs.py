"""The code of docs/spark.md, in the session that is there, against the test's server."""

from __future__ import annotations

import contextlib

import pytest
from kafka import TopicPartition
from pyspark.sql import SparkSession

from integration.clients import commit, new_consumer, new_producer
from integration.readme import SPARK_PAGE, block_with
from integration.server import Server


def test_a_streaming_job(spark: SparkSession, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshim.testing.spark.spark_session", lambda: contextlib.nullcontext(spark))
    exec(block_with("with spark_session()", server.bootstrap, SPARK_PAGE), {})


def test_the_coordinator_s_log(
    spark: SparkSession, server: Server, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    producer = new_producer(server.bootstrap)
    producer.send(topic, b"1", partition=0).get(timeout=20)
    producer.close()
    consumer = new_consumer(server.bootstrap, group_id="page")
    consumer.assign([TopicPartition(topic, 0)])
    commit(consumer, {TopicPartition(topic, 0): 0})
    consumer.close()
    exec(block_with("read_offsets_log", server.bootstrap, SPARK_PAGE), {"spark": spark})
    lag, generations = capsys.readouterr().out.split("\n\n")[:2]
    assert any("page" in line and topic in line for line in lag.splitlines())
    assert "generation" in generations
