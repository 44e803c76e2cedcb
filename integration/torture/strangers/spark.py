"""Spark Structured Streaming sends each record on, with a checkpoint.

`python -m integration.torture.strangers.spark JARS`
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from integration.torture.museum.work import BOOTSTRAP, OUTPUT, STATE_DIR, TOPIC


def main(jars: str) -> None:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", False)
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.memory", "512m")
        .config("spark.sql.shuffle.partitions", 1)
        .config("spark.sql.warehouse.dir", str(Path(STATE_DIR, "warehouse")))
        .getOrCreate()
    )
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", BOOTSTRAP)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .load()
    )
    query = (
        records.select("key", "value")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", BOOTSTRAP)
        .option("topic", OUTPUT)
        .option("checkpointLocation", str(Path(STATE_DIR, "checkpoint")))
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
