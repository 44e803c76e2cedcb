"""`pip install 'kshim[spark]'` takes a PySpark that tox tests, and for which the tests know the connector."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path

from integration.spark.jars import LOCK

ROOT = Path(__file__).resolve().parents[2]


def versions() -> list[str]:
    return re.findall(r"pyspark\d+: pyspark==(\S+)", (ROOT / "tox.ini").read_text())


def bounds() -> tuple[str, ...]:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    found = re.search(r"^pyspark>=(\S+),<=(\S+)$", setup["options.extras_require"]["spark"], re.MULTILINE)
    assert found is not None
    return found.groups()


def test_the_oldest_and_the_newest_are_tested() -> None:
    assert bounds() == (versions()[0], versions()[-1])


def test_the_page_names_them() -> None:
    page = (ROOT / "docs" / "spark.md").read_text()
    assert f"PySpark {', '.join(versions()[:-1])} and {versions()[-1]}" in page


def test_the_connector_of_each_is_known() -> None:
    locked = {line.split()[0] for line in LOCK.read_text().splitlines() if not line.startswith("#")}
    assert set(versions()) <= locked
