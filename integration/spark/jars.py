"""The jars of Spark's Kafka connector: fetched once with Maven, checked against `jars.lock`, kept in a cache.

`spark.jars.packages` would not do: where Maven's local repository has a POM without its jar, Spark's resolver
takes that for the whole artifact, and fails.

    python -m integration.spark.jars        prints `spark.jars` for the PySpark that is installed

The cache is that of `integration.support.toolchain`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from integration.support.toolchain import Missing, cache_dir, maven

LOCK = Path(__file__).with_name("jars.lock")


@dataclass(frozen=True)
class Jar:
    pyspark: str
    sha256: str
    coordinates: str

    @property
    def file_name(self) -> str:
        _, artifact, version = self.coordinates.split(":")
        return f"{artifact}-{version}.jar"


def locked_jars(pyspark: str) -> list[Jar]:
    """The jars for this version of PySpark. Raises Missing for a version that is not in the lock file."""
    lines = [line for line in LOCK.read_text().splitlines() if line and not line.startswith("#")]
    jars = [jar for line in lines if (jar := Jar(*line.split())).pyspark == pyspark]
    if not jars:
        raise Missing(f"{LOCK.name} has no jars for PySpark {pyspark}")
    return jars


def fetch_jars() -> list[Path]:
    """Fetch the jars for the installed PySpark; returns their paths in the cache. Raises Missing."""
    cache = cache_dir()
    return [_fetch(jar, cache) for jar in locked_jars(version("pyspark"))]


def _fetch(jar: Jar, cache: Path) -> Path:
    path = cache / jar.file_name
    if not path.exists():
        goal = ["dependency:copy", f"-Dartifact={jar.coordinates}", f"-DoutputDirectory={cache}"]
        maven(*goal, what=jar.coordinates)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != jar.sha256:
        path.unlink()
        raise Missing(f"{jar.coordinates} has sha256 {found}, {LOCK.name} says {jar.sha256}")
    return path


if __name__ == "__main__":
    print(",".join(map(str, fetch_jars())))
