"""The README's PySpark block runs in the tests' Spark session, which its `getOrCreate` finds."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from integration.support.clients import new_producer
from integration.support.readme import block_with
from integration.support.server import Server


def test_pyspark(spark: SparkSession, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    producer = new_producer(server.bootstrap)
    producer.send("greetings", key=b"en", value=b"hello").get(timeout=20)
    producer.close()
    exec(block_with("SparkSession", server.bootstrap), {})
    header, row = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("|")
    )
    assert header == ["key", "value", "partition", "offset", "timestamp"]
    assert row[:4] == ["en", "hello", "0", "0"]
