"""A local Spark with its Kafka source for tests, started in the least time.

    with spark_session() as spark:
        spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)...

A short life needs no optimising compiler and no second thread for garbage; and the classes that Spark loads
are archived by the first session, for all later ones to map into memory (Java's application class-data
sharing).
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

from kshim.spark.connector import SparkUnavailable, check_java, connector_settings, default_cache

__all__ = ["SparkUnavailable", "settings", "spark_session"]

JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
FIRST_JAVA_WITH_ARCHIVES = 13  # JEP 350
EXIT_TIMEOUT_S = 60


def settings(cache: Path, jars: Sequence[str | os.PathLike[str]] = ()) -> dict[str, str]:
    """Spark's configuration for a short local life, with the connector of the installed PySpark.

    jars: the connector and what it needs, as files; else Spark fetches them from Maven's central repository.
    """
    if jars:
        connecting = {"spark.jars": ",".join(os.fspath(jar) for jar in jars)}
    else:
        connecting = connector_settings(pyspark.__version__, cache)
    return connecting | {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


@contextlib.contextmanager
def spark_session(
    app_name: str = "tests",
    *,
    master: str = "local[2]",
    jars: Sequence[str | os.PathLike[str]] = (),
    cache: Path | None = None,
    conf: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """A session that is stopped, with its JVM, when the block ends. conf: wins over everything else.

    Raises SparkUnavailable where there is no Java, or no connector to be had.
    """
    cache = cache or default_cache()
    cache.mkdir(parents=True, exist_ok=True)
    java = check_java(pyspark.__version__)
    archive = cache / f"spark-{pyspark.__version__}-java-{java}.jsa"
    new_archive = archive.with_suffix(f".{os.getpid()}")
    configured = settings(cache, jars) | dict(conf or {})
    options = [configured.get("spark.driver.extraJavaOptions", ""), *JVM]
    if archive.exists():
        options.append(f"-XX:SharedArchiveFile={archive}")
    elif java >= FIRST_JAVA_WITH_ARCHIVES:
        options.append(f"-XX:ArchiveClassesAtExit={new_archive}")
    configured["spark.driver.extraJavaOptions"] = " ".join(options).strip()
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    builder = SparkSession.builder.master(master).appName(app_name)
    for name, value in configured.items():
        builder = builder.config(name, value)
    session = _start(builder, configured)
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
        _end_jvm()
        if new_archive.exists():  # whole, now that the JVM has ended
            new_archive.replace(archive)


def _start(builder: Any, configured: Mapping[str, str]) -> SparkSession:
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as error:
        source = configured.get("spark.jars") or configured.get("spark.jars.packages")
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SparkUnavailable(
            f"Spark did not start with {source}: {reason}; are the jars there, or the network to fetch them?"
        ) from error
    return session


def _end_jvm() -> None:
    """Let the JVM exit, and wait for it: the next session starts one of its own, with its own settings."""
    gateway, SparkContext._gateway = SparkContext._gateway, None
    SparkContext._jvm = None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(EXIT_TIMEOUT_S)
