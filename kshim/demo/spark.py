"""Counts the topic's records with PySpark and Spark's own Kafka source."""

import tempfile
from threading import Event as Signal

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, count_distinct

from kshim.demo.events import Counted, now_ms
from kshim.demo.worker import one_line, run, tell
from kshim.spark.connector import connector


def session() -> SparkSession:
    """A local Spark with its Kafka source, which is downloaded once from Maven's central repository."""
    source, scratch = connector(pyspark.__version__), tempfile.gettempdir()
    builder = (
        SparkSession.builder.appName("kshim demo")
        .master("local[2]")
        .config("spark.jars.packages", source)
        .config("spark.local.dir", scratch)
        .config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={scratch}")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise RuntimeError(f"Spark did not start with the package {source}: {one_line(error)}") from error


def count_records(arguments: list[str], stop: Signal) -> None:
    """Read the topic once, from beginning to end. Arguments: NAME BOOTSTRAP TOPIC."""
    name, bootstrap, topic = arguments
    spark = session()
    records = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .load()
    )
    [(total, different)] = records.select(count(col("value")), count_distinct(col("value"))).collect()
    tell(Counted(name=name, at_ms=now_ms(), records=total, values=different))
    spark.stop()


if __name__ == "__main__":
    run(count_records)
