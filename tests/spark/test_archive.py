"""Each installation of PySpark has an archive of classes of its own, made anew when its jars change."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kshim.spark.archive import UNUSED_S, Archive


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    jars = tmp_path / "one" / "jars"
    jars.mkdir(parents=True)
    _date(jars, -60)
    return jars


def _date(path: Path, seconds_from_now: float) -> None:
    os.utime(path, (time.time() + seconds_from_now,) * 2)


def _make(archive: Archive) -> None:
    """Write an archive, as a JVM does with the options for a new archive."""
    assert archive.options()[-1] == f"-XX:ArchiveClassesAtExit={archive.new_path}"
    archive.new_path.touch()
    archive.keep_new()


def test_the_first_session_makes_it_and_later_ones_use_it(tmp_path: Path, jars: Path) -> None:
    _make(Archive(tmp_path, jars, 17))
    assert (
        Archive(tmp_path, jars, 17).options()[-1]
        == f"-XX:SharedArchiveFile={Archive(tmp_path, jars, 17).path}"
    )


def test_other_jars_have_another(tmp_path: Path, jars: Path) -> None:
    _make(Archive(tmp_path, jars, 17))
    other = tmp_path / "two" / "jars"
    other.mkdir(parents=True)
    _make(Archive(tmp_path, other, 17))
    _make(Archive(tmp_path, jars, 21))


def test_other_jars_on_the_class_path_have_another(tmp_path: Path, jars: Path) -> None:
    """Java ignores an archive that was made with other jars in front of Spark's, or with older ones."""
    connector = tmp_path / "connector.jar"
    connector.write_bytes(b"1")
    _make(Archive(tmp_path, jars, 17))
    _make(Archive(tmp_path, jars, 17, [connector]))
    assert Archive(tmp_path, jars, 17, [connector]).path.exists()
    connector.write_bytes(b"22")
    _make(Archive(tmp_path, jars, 17, [connector]))


def test_jars_that_were_installed_again(tmp_path: Path, jars: Path) -> None:
    _make(Archive(tmp_path, jars, 17))
    _date(jars, +60)
    _make(Archive(tmp_path, jars, 17))


def test_an_old_java(tmp_path: Path, jars: Path) -> None:
    assert Archive(tmp_path, jars, 11).options() == []


def test_archives_that_are_not_used_are_deleted(tmp_path: Path, jars: Path) -> None:
    old, used = tmp_path / "spark-4.0.0-java-17.123", tmp_path / "spark-0123456789ab-java-17.jsa"
    other = tmp_path / "ivysettings.xml"
    for path in (old, used, other):
        path.touch()
        _date(path, -UNUSED_S - 60)
    _date(used, -60)
    _make(Archive(tmp_path, jars, 17))
    assert not old.exists()
    assert used.exists()
    assert other.exists()
