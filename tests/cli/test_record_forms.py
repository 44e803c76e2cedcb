"""How records are printed."""

from __future__ import annotations

import click
import pytest

from kshim.cli.record_forms import Rows, own_form, text_form
from kshim.client.record import Consumed

RECORD = Consumed("orders", 1, 7, 1795392986511, b"en", b"\xffhello", (("a", b"b"), ("c", None)))
NULL = Consumed("orders", 1, 8, -1, None, None, ())


def test_text_is_the_value_as_it_is() -> None:
    assert text_form(None, "")(RECORD) == b"\xffhello\n"
    assert text_form(": ", "NULL")(RECORD) == b"en: \xffhello\n"
    assert text_form(": ", "NULL")(NULL) == b"NULL: NULL\n"


def test_a_format_of_ones_own() -> None:
    form = own_form(r"%t-%p@%o %k=%s %K/%S %T {%h} 100%%\t\\\n", "~")
    assert form(RECORD) == b"orders-1@7 en=\xffhello 2/6 1795392986511 {a=b,c=~} 100%\t\\\n"
    assert form(NULL) == b"orders-1@8 ~=~ -1/-1 -1 {} 100%\t\\\n"


@pytest.mark.parametrize("text", ["%x", "%", "\\", r"\q"])
def test_a_format_that_is_none(text: str) -> None:
    with pytest.raises(click.UsageError, match="expected %t, %p, %o"):
        own_form(text, "")


def test_rows_have_titles_once_and_no_control_characters() -> None:
    rows = Rows(several_topics=False)
    titles, first = rows(RECORD._replace(value=b"\x1b[31mred\n")).decode().splitlines()
    assert titles.split() == ["Partition", "Offset", "Time", "(UTC)", "Key", "Value", "Headers"]
    assert first.split() == ["1", "7", "2026-11-23", "00:16:26.511", "en", r"\x1b[31mred\n", "a=b", "c=null"]
    (second,) = rows(NULL).decode().splitlines()
    assert second.split() == ["1", "8", "-", "null", "null"]
    assert first.index("en") == second.index("null") == titles.index("Key")


def test_rows_of_several_topics_name_the_topic() -> None:
    assert Rows(several_topics=True)(RECORD).decode().splitlines()[1].split()[0] == "orders"


def test_a_time_beyond_the_calendar_is_a_number() -> None:
    assert str(2**62).encode() in Rows(several_topics=False)(NULL._replace(timestamp_ms=2**62))
