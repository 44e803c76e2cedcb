"""The Spark session of `kshim pipeline`: tuned for a short query on one machine, unless the user says
otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pyspark
from pyspark.sql import SparkSession

from kshim.cli.pipeline_options import Options
from kshim.spark.connector import connector_jars, default_cache, is_kept
from kshim.spark.errors import PipelineError
from kshim.spark.session import JARS, own_session, spark_jars

SMALL_RECORDS = 50_000
"""Most records of a small log: reading one takes less time than Spark needs to prepare for a large one."""

FOR_ONE_MACHINE = {
    "spark.sql.shuffle.partitions": "32",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""Settings for one machine. Spark's default of 200 partitions is for a cluster; with only a few of them,
Spark would sort millions of commits on disk.
"""
FOR_A_SMALL_LOG = FOR_ONE_MACHINE | {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""Settings for a small log: one task, and interpreted plans, as generating code takes longer than running it.
"""

_MEMORY = ("-XX:+UseSerialGC", "-XX:MetaspaceSize=256m")
JAVA_OPTIONS = (
    *_MEMORY,
    "-XX:Tier4InvocationThreshold=100000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=200000",
    "-XX:Tier4BackEdgeThreshold=1000000",
)
"""Options for the JVM: only code that runs for long is optimised. In a short query, optimising would be half
the work.
"""
JAVA_OPTIONS_FOR_A_SMALL_LOG = (*_MEMORY, "-Xms1g", "-Xmn600m", "-XX:TieredStopAtLevel=1")
"""Options for the JVM with a small log. Spark makes some 2 GiB of garbage while it starts and plans, but
keeps little for so few records.
"""
_PACKAGES = "spark.jars.packages"

ShowStep = Callable[[str], None]


@contextmanager
def session(options: Options, records: int, show_step: ShowStep) -> Iterator[SparkSession]:
    """A session with `options`, for a log with `records` records.

    Raises PipelineError and SparkUnavailable.
    """
    is_small = records <= SMALL_RECORDS and not options.stream
    settings = _settings(options, FOR_A_SMALL_LOG if is_small else FOR_ONE_MACHINE)
    cache = default_cache()
    if JARS not in settings and _PACKAGES not in settings:
        if not is_kept(pyspark.__version__, cache):
            show_step("fetching Spark's Kafka connector, once")
        jars = connector_jars(pyspark.__version__, spark_jars(), cache, settings)
        settings[JARS] = ",".join(map(str, jars))
    show_step("starting Spark")
    java_options: tuple[str, ...] = ()
    if _is_local(settings):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        java_options = JAVA_OPTIONS_FOR_A_SMALL_LOG if is_small else JAVA_OPTIONS
    with own_session("kshim pipeline", settings, cache, java_options, verbose=options.verbose) as spark:
        yield spark


def _settings(options: Options, for_one_machine: Mapping[str, str]) -> dict[str, str]:
    settings = {
        "spark.master": "local[*]",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
    }
    for setting in options.conf:
        key, equals, value = setting.partition("=")
        if not equals:
            raise PipelineError(f"--conf {setting}: expected KEY=VALUE, as in --conf spark.master=yarn")
        settings[key.strip()] = value.strip()
    return {**for_one_machine, **settings} if _is_local(settings) else settings


def _is_local(settings: dict[str, str]) -> bool:
    return settings["spark.master"].startswith("local")
