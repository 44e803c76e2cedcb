"""A table that a stream keeps up to date: what is known so far, merged with each micro-batch.

Of two directories the one is read while the other is written, so that a batch that fails is made again from
what was there before it. What is in the table is as much as the merge keeps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

Merge = Callable[[DataFrame | None, DataFrame], DataFrame]
"""(what was known, a micro-batch) -> what is known now"""


class KeptTable:
    """path: a directory of its own, on storage that driver and executors share."""

    def __init__(self, spark: SparkSession, path: str, merge: Merge) -> None:
        self._spark = spark
        self._path = path
        self._merge = merge
        self._newest: str | None = None
        self._lock = threading.Lock()

    def follow(self, stream: DataFrame, output_mode: str = "append") -> StreamingQuery:
        """Merge every micro-batch of `stream` from now on."""
        writer = stream.writeStream.foreachBatch(self._add).outputMode(output_mode)
        return writer.option("checkpointLocation", f"{self._path}/checkpoint").start()

    def read(self, use: Callable[[DataFrame], None]) -> bool:
        """`use` the table as it is, while no batch is written. False: there is nothing yet."""
        with self._lock:
            if self._newest is None:
                return False
            use(self._spark.read.parquet(self._newest))
            return True

    def _add(self, batch: DataFrame, batch_id: int) -> None:
        with self._lock:
            known = None if self._newest is None else self._spark.read.parquet(self._newest)
            target = f"{self._path}/{batch_id % 2}"
            self._merge(known, batch).write.mode("overwrite").parquet(target)
            self._newest = target
