"""Apache Kafka's jars: everything that `pom.xml` depends on, fetched once per version with Maven."""

from __future__ import annotations

import os
from pathlib import Path

from integration.support.java import fetch_jars

VERSION = os.environ.get("KSHIM_TEST_KAFKA") or "4.4.0"
"""The version that tests compare with."""
RELEASE = ".".join(VERSION.split(".")[:2])
POM = Path(__file__).with_name("pom.xml")


def fetch_class_path(version: str = VERSION) -> str:
    """Apache Kafka's class path, for `java -cp`. Raises Missing, also where Java itself is missing."""
    return fetch_jars(POM, f"kafka.version={version}")
