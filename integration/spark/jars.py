"""The jars of Spark's Kafka connector: fetched once with Maven, checked against `jars.lock`, kept in a cache.

Not by Spark's own `spark.jars.packages`: that resolver takes a POM without its jar from Maven's local
repository for the whole, and fails.

    python -m integration.spark.jars        prints the value for `spark.jars`

The cache is $KSHIM_JARS, or ~/.cache/kshim/jars.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

LOCK = Path(__file__).with_name("jars.lock")
FETCH_TIMEOUT_S = 300


class JarsMissing(Exception):
    """A jar cannot be had; str() says which and why."""


@dataclass(frozen=True)
class Jar:
    sha256: str
    coordinates: str

    @property
    def file_name(self) -> str:
        _, artifact, version = self.coordinates.split(":")
        return f"{artifact}-{version}.jar"


def locked_jars() -> list[Jar]:
    lines = LOCK.read_text().splitlines()
    return [Jar(*line.split()) for line in lines if line and not line.startswith("#")]


def fetch_jars() -> list[Path]:
    """The jars' paths in the cache. Raises JarsMissing."""
    cache = Path(os.environ.get("KSHIM_JARS") or Path.home() / ".cache" / "kshim" / "jars")
    cache.mkdir(parents=True, exist_ok=True)
    return [_fetch(jar, cache) for jar in locked_jars()]


def _fetch(jar: Jar, cache: Path) -> Path:
    path = cache / jar.file_name
    if not path.exists():
        _copy(jar, cache)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != jar.sha256:
        path.unlink()
        raise JarsMissing(f"{jar.coordinates} has sha256 {found}, {LOCK.name} says {jar.sha256}")
    return path


def _copy(jar: Jar, cache: Path) -> None:
    goal = ["dependency:copy", f"-Dartifact={jar.coordinates}", f"-DoutputDirectory={cache}"]
    try:
        done = subprocess.run(
            ["mvn", "-q", "-B", *goal],
            cwd=cache,
            capture_output=True,
            text=True,
            timeout=FETCH_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise JarsMissing("Maven (mvn) is not installed") from None
    except subprocess.TimeoutExpired:
        raise JarsMissing(f"mvn did not fetch {jar.coordinates} in {FETCH_TIMEOUT_S} s") from None
    if done.returncode != 0 or not (cache / jar.file_name).exists():
        output = (done.stdout + done.stderr).strip().splitlines()
        raise JarsMissing(f"mvn cannot fetch {jar.coordinates}: {output[0] if output else 'no reason given'}")


if __name__ == "__main__":
    print(",".join(map(str, fetch_jars())))
