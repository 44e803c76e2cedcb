"""What every question of `kshim pipeline` is given."""

from __future__ import annotations

from typing import NamedTuple


class Out(NamedTuple):
    """Where the rows go: kind is "console", "parquet" or "table"; name, the directory or the table."""

    kind: str
    name: str = ""


class Options(NamedTuple):
    """What every command is given. conf: settings of Spark, as "KEY=VALUE"."""

    bootstrap: str
    conf: tuple[str, ...]
    out: Out = Out("console")
    stream: bool = False
    every_s: float = 10.0
    state: str | None = None
