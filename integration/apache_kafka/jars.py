"""Apache Kafka's jars: everything that `pom.xml` depends on, fetched once with Maven."""

from __future__ import annotations

from pathlib import Path

from integration.support.java import fetch_jars

POM = Path(__file__).with_name("pom.xml")


def fetch_class_path() -> str:
    """Apache Kafka's class path, for `java -cp`. Raises Missing, also where Java itself is missing."""
    return fetch_jars(POM)
