"""Times of day are UTC, whatever the machine's zone is."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Iterator

import pytest

from kshim.cli import logs
from kshim.cli.durations import time_of_day
from kshim.http.html import moment

AT_MS = 1_795_392_986_511


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_the_command_line_the_page_and_the_log_agree() -> None:
    assert time_of_day(AT_MS) == "00:16:26.511Z"
    assert "2026-11-23 00:16:26.511Z" in moment(AT_MS)
    record = logging.LogRecord("kshim", logging.INFO, "", 0, "text", (), None)
    record.created, record.msecs = AT_MS / 1000, AT_MS % 1000
    stream = io.StringIO()
    handlers = logging.getLogger().handlers[:]
    try:
        logs.start("info", stream)
        logging.getLogger().handle(record)
    finally:
        logging.getLogger().handlers[:] = handlers
    assert stream.getvalue() == "2026-11-23 00:16:26.511Z INFO    text\n"
