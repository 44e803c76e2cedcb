"""The format of the log, and Twisted's messages in it."""

import io
import logging
import re
from collections.abc import Iterator

import pytest
from twisted.logger import globalLogPublisher
from twisted.python import log as twisted_log

from kshim.cli import logs
from kshim.recorder.one_line import MOST_CHARACTERS


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, observers = root.handlers[:], root.level, list(globalLogPublisher._observers)
    yield
    root.handlers[:], root.level = handlers, level
    for observer in set(globalLogPublisher._observers) - set(observers):
        globalLogPublisher.removeObserver(observer)


def test_one_line_a_message() -> None:
    stream = io.StringIO()
    logs.start("info", stream)
    logging.getLogger("kshim.network.connection").warning("closed the connection of %s", "x")
    logging.getLogger("kshim.network.connection").debug("not told")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z WARNING closed the connection of x\n", stream.getvalue()
    )


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a\n2026-01-01 ERROR   forged", "a\\n2026-01-01 ERROR   forged"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x85\u2028\u202e", "\\x85\\u2028\\u202e"),
        ("lone \ud800", "lone \\ud800"),
        ("Gruppe-ä-群", "Gruppe-ä-群"),
    ],
)
def test_a_client_s_text_cannot_forge_a_line(name: str, written: str) -> None:
    stream = io.StringIO()
    logs.start("info", stream)
    logging.getLogger("kshim.coordination").info("group %s: rebalanced", name)
    (line,) = stream.getvalue().splitlines()
    assert line.endswith(f"INFO    group {written}: rebalanced")


def test_a_long_text_is_cut() -> None:
    stream = io.StringIO()
    logs.start("info", stream)
    logging.getLogger("kshim.coordination").info("%s", "x" * 32_767)
    assert len(stream.getvalue()) < MOST_CHARACTERS + 100
    assert "28767 more characters" in stream.getvalue()


def test_a_traceback_keeps_its_lines() -> None:
    stream = io.StringIO()
    logs.start("info", stream)
    try:
        raise ValueError("a\nb")
    except ValueError:
        logging.getLogger("kshim").exception("failed for %s", "a\nb")
    assert stream.getvalue().splitlines()[0].endswith("failed for a\\nb")
    assert "Traceback (most recent call last):" in stream.getvalue().splitlines()


def test_colour_is_for_terminals() -> None:
    stream = Terminal()
    logs.start("debug", stream)
    logs.logger.info("plain")
    logs.logger.error("red")
    plain, red = stream.getvalue().splitlines()
    assert "\x1b" not in plain
    assert red.startswith("\x1b[31m")
    assert red.endswith("\x1b[0m")


def test_what_twisted_finds_wrong_is_told_and_its_chatter_is_not() -> None:
    stream = io.StringIO()
    logs.start("debug", stream)
    logs.take_in_twisted()
    twisted_log.msg("Starting factory")
    twisted_log.err(KeyError("unhandled"), "in a Deferred")
    assert "Starting factory" not in stream.getvalue()
    assert "KeyError: 'unhandled'" in stream.getvalue()
