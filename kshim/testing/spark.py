"""A local Spark with its Kafka source for tests, started as fast as possible.

    with spark_session() as spark:
        spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)...

Its JVM lives only shortly, so it runs without the optimising compiler, and collects garbage in one thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from kshim.spark.connector import connector_jars, default_cache
from kshim.spark.errors import SparkUnavailable
from kshim.spark.session import JARS, own_session, spark_jars

__all__ = ["SparkUnavailable", "settings", "spark_session"]

JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def settings(cache: Path, jars: Sequence[str | os.PathLike[str]] = ()) -> dict[str, str]:
    """Spark's configuration for a short-lived local session, with the installed PySpark's connector.

    cache: the directory where the connector is kept. jars: files of the connector and its dependencies; if
    none are given, they are downloaded once from Maven's central repository.
    """
    connecting = jars or connector_jars(pyspark.__version__, spark_jars(), cache, {})
    return {
        JARS: ",".join(os.fspath(jar) for jar in connecting),
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
    """A session that is stopped, with its JVM, when the block ends.

    jars: as in `settings`. conf: settings that override all others. Raises SparkUnavailable if Java or the
    connector is missing.
    """
    cache = cache or default_cache()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    configured = {"spark.master": master, **settings(cache, jars), **(conf or {})}
    with own_session(app_name, configured, cache, JAVA_OPTIONS) as session:
        yield session
