"""A table that a stream keeps up to date: what is known so far, merged with each micro-batch.

Of two directories the one is read while the other is written, so that a batch that fails is made again from
what was there before it. What is in the table is as much as the merge keeps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

Merge = Callable[[DataFrame | None, DataFrame], DataFrame]
"""(what was known, a micro-batch) -> what is known now"""
Use = Callable[[DataFrame], None]


class KeptTable:
    """path: a directory of its own, on storage that driver and executors share. each: called with what a
    micro-batch has changed: the rows that are new or are other than they were.
    """

    def __init__(self, spark: SparkSession, path: str, merge: Merge, each: Use | None = None) -> None:
        self._spark = spark
        self._path = path
        self._merge = merge
        self._each = each
        self._newest: str | None = None
        self._lock = threading.Lock()

    def following(self, stream: DataFrame) -> DataStreamWriter:
        """A query that merges every micro-batch of `stream`, to be started."""
        writer = stream.writeStream.foreachBatch(self._add)
        return writer.option("checkpointLocation", f"{self._path}/checkpoint")

    def read(self, use: Use) -> None:
        """`use` the table as it is, while no batch is written; nothing where there is none yet."""
        with self._lock:
            if self._newest is not None:
                use(self._spark.read.parquet(self._newest))

    def _add(self, batch: DataFrame, batch_id: int) -> None:
        with self._lock:
            # By the batch's number: a query that goes on from its checkpoint goes on from its table.
            known = self._spark.read.parquet(self._directory(batch_id - 1)) if batch_id else None
            target = self._directory(batch_id)
            self._merge(known, batch).write.mode("overwrite").parquet(target)
            if self._each is not None:
                now = self._spark.read.parquet(target)
                self._each(now if known is None else now.exceptAll(known))
            self._newest = target

    def _directory(self, batch_id: int) -> str:
        return f"{self._path}/{batch_id % 2}"
