"""A Spark session with its own JVM, which starts faster from the second time on.

When the first session ends, the JVM archives the classes that Spark has loaded, and all later sessions map
the archive into memory (Java's application class-data sharing, JEP 350).
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from kshim.spark.connector import SparkUnavailable, check_java

QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
FIRST_JAVA_WITH_ARCHIVES = 13
EXIT_TIMEOUT_S = 60
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@contextlib.contextmanager
def own_session(
    app_name: str, settings: Mapping[str, str], cache: Path, java_options: Sequence[str] = ()
) -> Iterator[SparkSession]:
    """A session that is stopped, with its JVM, when the block ends.

    cache: the archive's directory. java_options: for the driver's JVM, after those in `settings`. Raises
    SparkUnavailable without Java, or without a connector.
    """
    cache.mkdir(parents=True, exist_ok=True)
    java = check_java(pyspark.__version__)
    archive = cache / f"spark-{pyspark.__version__}-java-{java}.jsa"
    new_archive = archive.with_suffix(f".{os.getpid()}")
    options = [settings.get(_JAVA_OPTIONS, ""), *java_options, *QUIET]
    if archive.exists():
        options.append(f"-XX:SharedArchiveFile={archive}")
    elif java >= FIRST_JAVA_WITH_ARCHIVES:
        options.append(f"-XX:ArchiveClassesAtExit={new_archive}")
    os.environ.update(PYSPARK_PYTHON=sys.executable)
    session = _start(app_name, {**settings, _JAVA_OPTIONS: " ".join(options).strip()})
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
        _end_jvm()
        if new_archive.exists():  # complete, as the JVM has ended
            new_archive.replace(archive)


def _start(app_name: str, settings: Mapping[str, str]) -> SparkSession:
    builder: Any = SparkSession.builder.appName(app_name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as error:
        source = settings.get("spark.jars") or settings.get("spark.jars.packages")
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SparkUnavailable(
            f"Spark did not start with {source}: {reason}; are the jars there, or the network to fetch them?"
        ) from error
    return session


def _end_jvm() -> None:
    """Let the JVM exit, and wait for it, so that the next session starts its own, with its own settings."""
    gateway, SparkContext._gateway = SparkContext._gateway, None
    SparkContext._jvm = None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(EXIT_TIMEOUT_S)
