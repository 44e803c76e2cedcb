"""The demo's command: its options, and one line that says what must be installed."""

import importlib.metadata

import pytest
from click.testing import CliRunner

from kshim.cli import demo as command
from kshim.cli.demo import demo


@pytest.fixture
def installed(monkeypatch):
    """Pretend that this is installed: `installed(kafka=..., pyspark=..., java=...)`; None means not
    installed."""

    def pretend(kafka: str | None = "3.0.12", pyspark: bool = True, java: bool = True) -> None:
        def version(name: str) -> str:
            if kafka is None:
                raise importlib.metadata.PackageNotFoundError(name)
            return kafka

        monkeypatch.setattr(importlib.metadata, "version", version)
        monkeypatch.setattr(command, "find_spec", lambda name: object() if pyspark else None)
        monkeypatch.setattr(command, "java", lambda: java)

    return pretend


@pytest.mark.parametrize("version", ["3.0.12", "3.0.13", "3.1.0.dev1", "4.0"])
def test_nothing_is_missing(installed, version):
    installed(kafka=version)
    assert command.lacking(spark=True) is None


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"kafka": None}, "needs kafka-python 3.0.12 or later: pip install 'kafka-python>=3.0.12'"),
        ({"kafka": "2.3.3"}, "needs kafka-python 3.0.12 or later, not 2.3.3: pip install"),
        ({"kafka": "3.0.9"}, "needs kafka-python 3.0.12 or later, not 3.0.9: pip install"),
        ({"pyspark": False}, "--spark needs PySpark: pip install pyspark"),
        ({"java": False}, "--spark needs Java 17 or later: install it, or set JAVA_HOME"),
    ],
)
def test_what_is_missing_is_said_in_one_line_with_status_2(installed, state, words):
    installed(**state)
    result = CliRunner().invoke(demo, ["--spark"])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_spark_is_needed_only_when_asked_for(installed):
    installed(pyspark=False, java=False)
    assert command.lacking(spark=False) is None


@pytest.mark.parametrize(("there", "found"), [(True, True), (False, False)])
def test_java_where_java_home_says(monkeypatch, tmp_path, there, found):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if there:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "java").touch()
    assert command.java() is found


def test_java_on_the_path(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not command.java()
    (tmp_path / "java").touch(mode=0o755)
    assert command.java()


@pytest.mark.parametrize("seconds", ["-1", "soon", "3601"])
def test_a_wrong_number_of_seconds(installed, seconds):
    installed()
    assert CliRunner().invoke(demo, ["--seconds", seconds]).exit_code == 2
