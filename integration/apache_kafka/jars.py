"""Apache Kafka's jars: everything that `pom.xml` depends on, fetched once with Maven."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from integration.support.maven import JarsMissing, cache_dir, maven

POM = Path(__file__).with_name("pom.xml")


def fetch_class_path() -> str:
    """Apache Kafka's class path, for `java -cp`. Raises JarsMissing, also where Java itself is missing."""
    if not shutil.which("java"):
        raise JarsMissing("Java is not installed")
    version = re.search(r"<version>(.+?)</version>", POM.read_text())
    assert version is not None
    jars = cache_dir() / f"apache-kafka-{version[1]}"
    if not jars.exists():
        _fetch(jars)
    return f"{jars}/*"


def _fetch(jars: Path) -> None:
    """Fetch into a temporary directory next to `jars`, so that `jars` exists only when it is complete."""
    with tempfile.TemporaryDirectory(dir=jars.parent) as directory:
        fetched = Path(directory) / "jars"
        maven(
            "dependency:copy-dependencies", f"-DoutputDirectory={fetched}", f"-f={POM}", what="Apache Kafka"
        )
        try:
            os.rename(fetched, jars)
        except FileExistsError:  # another process was quicker
            shutil.rmtree(fetched)
