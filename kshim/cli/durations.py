"""Reads durations such as "5m", "1h30m", "8d" and "250ms", and writes times of day."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

import click

UNITS_MS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")


def duration_ms(text: str) -> int:
    """Return a duration such as "1h30m" in ms. It is the type of click parameters. Raises UsageError."""
    if not text or _PART.sub("", text):
        raise click.UsageError(f"{text!r} is no duration: write 90s, 5m, 1h30m, 8d or 250ms")
    return round(sum(float(number) * UNITS_MS[unit] for number, unit in _PART.findall(text)))


def time_of_day(at_ms: int) -> str:
    """The time of a moment since 1970 in UTC, like in the log and on the page: "08:16:26.505Z"."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S.%f}"[:-3] + "Z"
