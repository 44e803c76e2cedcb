"""The connector and the Java that a PySpark needs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kshim.spark.connector import SparkUnavailable, check_java, connector, java_version


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


@pytest.fixture
def java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java for which the test writes the answer to -version."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    return tmp_path


def says(java_home: Path, line: str) -> None:
    java = java_home / "bin" / "java"
    java.write_text(f"#!{sys.executable}\nimport sys\nprint({line!r}, file=sys.stderr)\n")
    java.chmod(0o755)


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ('openjdk version "17.0.12" 2024-07-16', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21"', 21),
    ],
)
def test_the_version_of_java(java_home: Path, line: str, version: int) -> None:
    says(java_home, line)
    assert java_version() == version


def test_a_java_that_is_too_old(java_home: Path) -> None:
    says(java_home, 'openjdk version "11.0.2" 2019-01-15')
    assert check_java("3.5.7") == 11
    with pytest.raises(SparkUnavailable, match=r"Spark 4.0.0 needs Java 17 or later, found 11; install"):
        check_java("4.0.0")


def test_no_java(java_home: Path) -> None:
    with pytest.raises(SparkUnavailable, match=r"JAVA_HOME=.* has none that runs; install Java 17"):
        java_version()


def test_what_is_no_java(java_home: Path) -> None:
    says(java_home, "hello")
    with pytest.raises(SparkUnavailable, match="names no version"):
        java_version()
