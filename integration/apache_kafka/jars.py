"""Apache Kafka's jars: everything that `pom.xml` depends on, fetched once with Maven."""

from __future__ import annotations

import re
from pathlib import Path

from integration.support.toolchain import kept, maven, need

POM = Path(__file__).with_name("pom.xml")


def fetch_class_path() -> str:
    """Apache Kafka's class path, for `java -cp`. Raises Missing, also where Java itself is missing."""
    need("java")
    version = re.search(r"<version>(.+?)</version>", POM.read_text())
    assert version is not None

    def fetch(jars: Path) -> None:
        maven("dependency:copy-dependencies", f"-DoutputDirectory={jars}", f"-f={POM}", what="Apache Kafka")

    return f"{kept(f'apache-kafka-{version[1]}', fetch)}/*"
