"""The Java that a PySpark needs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kshim.spark.errors import SparkUnavailable
from kshim.spark.java import check_java, java_command, java_version


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
    assert java_version(java_command()) == version


def test_a_java_that_is_too_old(java_home: Path) -> None:
    says(java_home, 'openjdk version "11.0.2" 2019-01-15')
    assert check_java("3.5.7") == 11
    with pytest.raises(
        SparkUnavailable,
        match=rf"^Spark 4.0.0 needs Java 17 or later, and {java_home}/bin/java is Java 11; install Java 17",
    ):
        check_java("4.0.0")


def test_a_wrong_java_home(java_home: Path) -> None:
    with pytest.raises(
        SparkUnavailable, match=rf"^Spark needs Java: JAVA_HOME={java_home} has no bin/java; install"
    ):
        check_java("4.0.0")


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        SparkUnavailable, match=r"^Spark needs Java: no java is on the PATH; install Java 17, or set"
    ):
        check_java("4.0.0")


@pytest.mark.parametrize(
    ("line", "said"),
    [("Unable to locate a Java Runtime.", "says Unable to locate"), ("", "says nothing, and")],
)
def test_what_is_no_java(java_home: Path, line: str, said: str) -> None:
    says(java_home, line)
    with pytest.raises(SparkUnavailable, match=said):
        check_java("4.0.0")


def test_a_java_that_does_not_run(java_home: Path) -> None:
    says(java_home, "")
    (java_home / "bin" / "java").chmod(0o644)
    with pytest.raises(SparkUnavailable, match=r"bin/java does not run: .*Permission denied"):
        check_java("4.0.0")
