"""Spark's own Kafka connector: the one that belongs to a PySpark, and the Java that runs it.

The connector has PySpark's version, but is not in PySpark's wheel. See Spark's "Structured Streaming + Kafka
Integration Guide".
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

JAVA_TIMEOUT_S = 20


# Only Maven's central repository: Maven's local one may hold a POM without its jar, which Spark's resolver
# would take for the whole artifact.
_IVY_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""


class SparkUnavailable(Exception):
    """Spark cannot start. str() is one line that says what to do."""


def connector(pyspark_version: str) -> str:
    """The connector's Maven coordinates, for `spark.jars.packages`. Scala is 2.12 up to 3.5, then 2.13."""
    scala = "2.12" if pyspark_version.startswith("3.") else "2.13"
    return f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{pyspark_version}"


def default_cache() -> Path:
    """The directory of files that are made once: $XDG_CACHE_HOME/kshim, else ~/.cache/kshim."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kshim"


def connector_settings(pyspark_version: str, cache: Path | None = None) -> dict[str, str]:
    """The settings with which Spark fetches its connector from Maven's central repository, once."""
    ivy = (cache or default_cache()) / "ivysettings.xml"
    ivy.parent.mkdir(parents=True, exist_ok=True)
    ivy.write_text(_IVY_SETTINGS)
    return {"spark.jars.packages": connector(pyspark_version), "spark.jars.ivySettings": str(ivy)}


def oldest_java(pyspark_version: str) -> int:
    """The oldest version of Java that this Spark runs on."""
    return 8 if pyspark_version.startswith("3.") else 17


def java_version() -> int:
    """The version of the Java that Spark would start. Raises SparkUnavailable if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    try:
        done = subprocess.run(
            [java or "java", "-version"], capture_output=True, text=True, timeout=JAVA_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        where = f"JAVA_HOME={home} has none that runs" if home else "no java is on the PATH"
        raise SparkUnavailable(f"Spark needs Java: {where}; install Java 17, or set JAVA_HOME") from error
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if found is None:
        raise SparkUnavailable(f"{java} -version names no version; install Java 17, or set JAVA_HOME")
    return int(found[1])


def check_java(pyspark_version: str) -> int:
    """The version of Java. Raises SparkUnavailable if there is none, or this Spark does not run on it."""
    found, oldest = java_version(), oldest_java(pyspark_version)
    if found < oldest:
        raise SparkUnavailable(
            f"Spark {pyspark_version} needs Java {oldest} or later, found {found}; install Java 17, "
            "or set JAVA_HOME"
        )
    return found
