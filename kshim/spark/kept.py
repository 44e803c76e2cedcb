"""A table that a stream keeps up to date by merging each micro-batch into it.

The table has two directories: a batch reads one and writes the other, so that a failed batch can be repeated
from the unchanged table. The merge decides how much the table holds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

Merge = Callable[[DataFrame | None, DataFrame], DataFrame]
"""(the table, or None before the first micro-batch; a micro-batch) -> the new table"""
Use = Callable[[DataFrame], None]


class KeptTable:
    """A table that a streaming query writes.

    path: the table's own directory, on storage that driver and executors share. each: called after each
    micro-batch with the rows that are new or have changed.
    """

    def __init__(self, spark: SparkSession, path: str, merge: Merge, each: Use | None = None) -> None:
        self._spark = spark
        self._path = path
        self._merge = merge
        self._each = each
        self._newest: str | None = None
        self._lock = threading.Lock()

    def following(self, stream: DataFrame) -> DataStreamWriter:
        """A query that merges every micro-batch of `stream`; the caller starts it."""
        writer = stream.writeStream.foreachBatch(self._add)
        return writer.option("checkpointLocation", f"{self._path}/checkpoint")

    def read(self, use: Use) -> None:
        """Call `use` with the table, while no batch is being written. Does nothing before the first batch."""
        with self._lock:
            if self._newest is not None:
                use(self._spark.read.parquet(self._newest))

    def _add(self, batch: DataFrame, batch_id: int) -> None:
        with self._lock:
            # The batch's number selects the directory: a query resumed from its checkpoint finds its table.
            known = self._spark.read.parquet(self._directory(batch_id - 1)) if batch_id else None
            target = self._directory(batch_id)
            self._merge(known, batch).write.mode("overwrite").parquet(target)
            if self._each is not None:
                now = self._spark.read.parquet(target)
                self._each(now if known is None else now.exceptAll(known))
            self._newest = target

    def _directory(self, batch_id: int) -> str:
        return f"{self._path}/{batch_id % 2}"
