"""Read the coordinator's log with Spark: the groups' commits and lag, and why they rebalance.

    rows = decode(read_offsets_log(spark, "127.0.0.1:9092"))
    latest_commits(rows).show()

The functions take and return DataFrames, and run on a Spark cluster as on a laptop. They need
`pip install 'kshim[spark]'`, and Spark's own Kafka connector in the session: `connector` names it.
"""

from kshim.spark.connector import connector
from kshim.spark.errors import PipelineError, SparkUnavailable

__all__ = [
    "PipelineError",
    "SparkUnavailable",
    "connector",
    "decode",
    "flapping",
    "group_lag",
    "latest_commits",
    "read_end_offsets",
    "read_head_times",
    "read_offsets_log",
    "rebalances",
    "restore",
    "snapshot",
    "stuck",
]

_HOME = {
    "decode": "rows",
    "flapping": "rebalancing",
    "group_lag": "commits",
    "latest_commits": "commits",
    "read_end_offsets": "source",
    "read_head_times": "source",
    "read_offsets_log": "source",
    "rebalances": "rebalancing",
    "restore": "backup",
    "snapshot": "backup",
    "stuck": "commits",
}


def __getattr__(name: str) -> object:
    """Import names that need PySpark at first use: the command line imports this package without PySpark."""
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
