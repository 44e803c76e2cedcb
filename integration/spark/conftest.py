"""One Spark session for all tests: starting a JVM is what takes the time."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from integration.maven import JarsMissing
from integration.spark.jars import fetch_jars

# a short life needs no optimising compiler and no second thread for garbage
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def connector_jars() -> str:
    """The value for `spark.jars`. What is missing is an error in CI, a skip elsewhere."""
    try:
        if not shutil.which("java") and "JAVA_HOME" not in os.environ:
            raise JarsMissing("Java is not installed")
        return ",".join(map(str, fetch_jars()))
    except JarsMissing as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"Spark cannot run: {error}")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    jars = connector_jars()
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("kshim")
        .config("spark.jars", jars)
        .config("spark.driver.extraJavaOptions", JAVA_OPTIONS)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
    )
    with contextlib.chdir(tmp_path_factory.mktemp("spark")):  # where Spark drops its own files
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
