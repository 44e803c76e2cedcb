"""A Spark session with its own JVM. From the second time on, it starts faster.

When the first session ends, its JVM archives the classes that Spark has loaded. All later sessions use the
archive. On one machine the connector's jars are put on the JVM's class path, because only classes from the
class path are archived, and because Spark copies the jars of `spark.jars` at each start.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from kshim.spark.archive import Archive
from kshim.spark.errors import SparkUnavailable
from kshim.spark.java import check_java
from kshim.spark.output import Output, reason, why_exited

EXIT_TIMEOUT_S = 60
JARS = "spark.jars"
_CLASS_PATH = "spark.driver.extraClassPath"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def spark_jars() -> Path:
    """The directory of Spark's own jars."""
    return Path(pyspark.__file__).resolve().parent / "jars"


@contextlib.contextmanager
def own_session(
    app_name: str,
    settings: Mapping[str, str],
    cache: Path,
    java_options: Sequence[str] = (),
    *,
    verbose: bool = True,
) -> Iterator[SparkSession]:
    """A session that is stopped, with its JVM, when the block ends.

    cache: the archive's directory. java_options: for the driver's JVM, after those in `settings`. verbose:
    True to show the JVM's output. Raises SparkUnavailable if Java or a jar is missing.
    """
    cache.mkdir(parents=True, exist_ok=True)
    java = check_java(pyspark.__version__)
    placed = place_jars(settings)
    class_path = [Path(jar) for jar in placed.get(_CLASS_PATH, "").split(os.pathsep) if jar]
    archive = Archive(cache, spark_jars(), java, class_path)
    options = [settings.get(_JAVA_OPTIONS, ""), *java_options, *archive.options()]
    os.environ.update(PYSPARK_PYTHON=sys.executable)
    configured = {**placed, "spark.app.name": app_name, _JAVA_OPTIONS: " ".join(options).strip()}
    is_whole = False
    try:
        session = _start(configured, Output(shown=verbose))
        try:
            yield session
            is_whole = True
        finally:
            session.stop()
    finally:
        # A failed session has loaded few classes; an archive of these would slow all later sessions down.
        if _end_jvm() and is_whole:
            archive.keep_new()
        archive.drop_new()


def place_jars(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with the jars on the class path, if driver and executors are one process.

    Raises SparkUnavailable if a jar is missing, as Spark would start without it.
    """
    named = [jar for jar in settings.get(JARS, "").split(",") if jar]
    local = [Path(jar.removeprefix("file://")) for jar in named if jar.startswith(("/", "file:///"))]
    for jar in local:
        if not jar.is_file():
            raise SparkUnavailable(f"{JARS}: there is no file {jar}; give the connector's jars, or no {JARS}")
    if not settings.get("spark.master", "").startswith("local") or len(local) < len(named):
        return dict(settings)
    before = settings.get(_CLASS_PATH, "")
    class_path = os.pathsep.join(filter(None, [before, *map(str, local)]))
    return {name: value for name, value in settings.items() if name != JARS} | {_CLASS_PATH: class_path}


def _start(settings: Mapping[str, str], output: Output) -> SparkSession:
    conf = SparkConf().setAll(list(settings.items()))
    try:
        gateway = SparkContext._gateway or launch_gateway(
            conf, {"stdout": output.writing, "stderr": output.writing}
        )
    except PySparkException as error:
        output.close_writing()
        raise SparkUnavailable(f"Spark did not start: {why_exited(output.lines())}") from error
    output.close_writing()
    try:
        SparkContext(conf=conf, gateway=gateway).setLogLevel("ERROR")
        session: SparkSession = SparkSession.builder.getOrCreate()
    except (Py4JError, PySparkException) as error:
        raise SparkUnavailable(f"Spark did not start: {reason(error)}") from error
    return session


def _end_jvm() -> bool:
    """Wait until the JVM has exited, so that the next session starts another one with other settings.

    Returns False if it had to be killed.
    """
    gateway = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
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
