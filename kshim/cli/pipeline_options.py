"""The options that the subcommands of `kshim pipeline` share."""

from __future__ import annotations

from typing import NamedTuple


class Out(NamedTuple):
    """The destination of the rows."""

    kind: str
    """One of "console", "parquet" and "table"."""
    name: str = ""
    """The directory or the table; "" for the console."""


class Options(NamedTuple):
    """The options of one call of `kshim pipeline`."""

    bootstrap: str
    log: str
    """The topic to read; "" for the one that `find_offsets_log` finds."""
    conf: tuple[str, ...]
    """Settings of Spark, each as "KEY=VALUE"."""
    out: Out = Out("console")
    groups: tuple[str, ...] = ()
    """Only these groups; empty for all."""
    verbose: bool = False
    """True to show Spark's output."""
    stream: bool = False
    every_s: float = 10.0
    state: str | None = None
    """The directory where Spark keeps a stream's state; None for a temporary one."""
