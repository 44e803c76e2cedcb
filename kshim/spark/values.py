"""DataFrames of a few values in the driver.

`createDataFrame` would start a Python process for them, which takes a second. So the values are put into the
plan as text, which the JVM parses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn


def frame_of(spark: SparkSession, rows: Iterable[Sequence[object]], schema: Mapping[str, str]) -> DataFrame:
    """The rows as a DataFrame. schema: the type of each column, by name; only types that JSON has."""
    text = json.dumps([dict(zip(schema, row, strict=True)) for row in rows], ensure_ascii=False)
    fields = ",".join(f"`{name}`:{kind}" for name, kind in schema.items())
    read = fn.from_json(fn.lit(text), f"array<struct<{fields}>>")
    return spark.range(1).select(fn.explode(read).alias("it")).select("it.*")
