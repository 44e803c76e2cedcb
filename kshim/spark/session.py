"""A Spark session with its own JVM, which starts faster from the second time on.

When the first session ends, its JVM archives the classes that Spark has loaded. All later sessions use the
archive.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from kshim.spark.archive import Archive
from kshim.spark.connector import SparkUnavailable, check_java

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
    archive = Archive(cache, Path(pyspark.__file__).resolve().parent / "jars", java)
    options = [settings.get(_JAVA_OPTIONS, ""), *java_options, *archive.options()]
    os.environ.update(PYSPARK_PYTHON=sys.executable)
    session = _start(app_name, {**settings, _JAVA_OPTIONS: " ".join(options).strip()})
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
        if _end_jvm():
            archive.keep_new()


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


def _end_jvm() -> bool:
    """Wait until the JVM has exited, so that the next session starts its own, with its own settings.

    Returns False if it had to be killed.
    """
    gateway, SparkContext._gateway = SparkContext._gateway, None
    SparkContext._jvm = None
    if gateway is None:
        return True
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(EXIT_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        return False
    return True
