"""The connector that a PySpark needs, and why it cannot be fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshim.spark.connector import connector, leave_out_known, why_not_fetched

COORDINATES = "org.apache.spark:spark-sql-kafka-0-10_2.13:9.9.9"
URL = "https://repo.example/org/apache/spark/x.pom"


@pytest.mark.parametrize(
    ("pyspark", "coordinates"),
    [
        ("3.5.7", "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7"),
        ("4.0.0", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"),
        ("4.2.0", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"),
    ],
)
def test_the_connector_has_the_version_of_pyspark(pyspark: str, coordinates: str) -> None:
    assert connector(pyspark) == coordinates


def test_what_spark_has_itself_is_left_out(tmp_path: Path) -> None:
    for name in ("kafka-clients-3.9.0.jar", "slf4j-api-2.0.7.jar", "spark-tags_2.13-4.0.0.jar"):
        (tmp_path / name).touch()
    leave_out_known(tmp_path, ["slf4j-api-2.0.16.jar", "spark-tags_2.13-4.0.0.jar", "kafka-1.0.jar"])
    assert [jar.name for jar in tmp_path.iterdir()] == ["kafka-clients-3.9.0.jar"]


# Where the resolver runs, `integration/spark/test_failures.py` has the other reasons.
@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (f"HttpClientHandler: refused url={URL}", f"{URL} does not answer (refused): is there a network?"),
        (f":: a#b;1: not found\nServer access Error: Timeout url={URL}", f"{URL} does not answer (Timeout)"),
        (f"Host repo.example not found. url={URL}", f"{URL} does not answer (Host repo.example not found)"),
        (
            f"Server access error at url {URL} (java.net.ConnectException: refused)",
            f"{URL} does not answer (java",
        ),
        (
            "\t[FAILED     ] org.apache.kafka#kafka-clients;3.9.0!kafka-clients.jar: (0ms)",
            "fetched: [FAILED ",
        ),
        ("something new", f"{COORDINATES} cannot be fetched: something new; give the jars with --conf"),
        ("", f"{COORDINATES} cannot be fetched: Ivy said nothing; give the jars with --conf"),
    ],
)
def test_why_it_cannot_be_fetched(printed: str, reason: str) -> None:
    assert reason in why_not_fetched(COORDINATES, printed.splitlines())
