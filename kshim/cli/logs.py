"""The log: one line per message on standard error, with UTC time, level and text; coloured on a terminal."""

from __future__ import annotations

import logging
import sys
import time
from typing import TextIO

from kshim.recorder.one_line import on_one_line

logger = logging.getLogger("kshim")

_COLOURS = {
    logging.DEBUG: "\x1b[2m",
    logging.WARNING: "\x1b[33m",
    logging.ERROR: "\x1b[31m",
    logging.CRITICAL: "\x1b[31m",
}
_RESET = "\x1b[0m"


class _Lines(logging.Formatter):
    converter = staticmethod(time.gmtime)
    default_msec_format = "%s.%03dZ"

    def __init__(self, coloured: bool) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")
        self._coloured = coloured

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (logging calls it so)
        if record.name != "twisted":  # Twisted's tracebacks have several lines
            record.message = on_one_line(record.message)
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        colour = _COLOURS.get(record.levelno) if self._coloured else None
        return f"{colour}{line}{_RESET}" if colour else line


def start(level: str, stream: TextIO | None = None) -> None:
    """Send the log to `stream` (standard error), from `level` ("debug", "info", ...) upwards."""
    stream = stream or sys.stderr
    lines = logging.StreamHandler(stream)
    lines.setFormatter(_Lines(stream.isatty()))
    logging.basicConfig(level=level.upper(), handlers=[lines], force=True)


def take_in_twisted() -> None:
    """Add Twisted's messages to this log, from warning upwards. Its info level would report every factory."""
    from twisted.python.log import PythonLoggingObserver

    logging.getLogger("twisted").setLevel(logging.WARNING)
    PythonLoggingObserver().start()
