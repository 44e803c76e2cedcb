"""Records as lines of JSON: every record comes back as it was, and a mistake is told."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.cli.json_records import WrongRecord, json_line, parse_record
from kshim.client.record import Consumed, NewRecord

texts = st.one_of(st.none(), st.binary(max_size=20), st.text(max_size=20).map(str.encode))
headers = st.lists(st.tuples(st.text(max_size=10), texts), max_size=3).map(tuple)


@given(texts, texts, headers, st.integers(-1, 2**63 - 1), st.integers(0, 2**31 - 1))
def test_a_record_comes_back_as_it_was(
    key: bytes | None,
    value: bytes | None,
    headers: tuple[tuple[str, bytes | None], ...],
    timestamp_ms: int,
    partition: int,
) -> None:
    line = json_line(Consumed("orders", partition, 7, timestamp_ms, key, value, headers))
    assert "\n" not in line
    assert parse_record(line.encode(), 3) == NewRecord(key, value, headers, timestamp_ms, partition, 3)


def test_the_fields() -> None:
    record = Consumed("orders", 1, 7, 1795392986511, b"en", b"\x00\xff", (("trace", b"a1"), ("none", None)))
    assert json.loads(json_line(record)) == {
        "topic": "orders",
        "partition": 1,
        "offset": 7,
        "timestamp_ms": 1795392986511,
        "key": "en",
        "value": {"base64": "AP8="},
        "headers": [["trace", "a1"], ["none", None]],
    }


def test_people_write_less() -> None:
    assert parse_record(b'{"value": "v", "headers": {"a": "b"}}', 1) == NewRecord(
        None, b"v", (("a", b"b"),), number=1
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"hello", "expected a JSON object: Expecting value"),
        (b"[1]", "expected a JSON object, as in"),
        (b'{"vlaue": "a"}', "unknown field 'vlaue'; did you mean value?"),
        (b'{"key": "a"}', 'expected a "value"; it may be null'),
        (b'{"value": 1}', "value: expected text, null, or"),
        (b'{"value": {"a": 1}}', "value: expected text, null, or"),
        (b'{"value": {"base64": "?"}}', "value: "),
        (b'{"value": "\\ud800"}', "value: "),
        (b'{"value": "", "partition": -1}', "partition: expected a whole number from 0 to"),
        (b'{"value": "", "partition": true}', "partition: expected a whole number"),
        (b'{"value": "", "timestamp_ms": 1e99}', "timestamp_ms: expected a whole number"),
        (b'{"value": "", "headers": [["a"]]}', "headers: expected"),
        (b"[" * 100_000, "expected a JSON object: "),
    ],
)
def test_a_mistake_is_told(line: bytes, why: str) -> None:
    with pytest.raises(WrongRecord) as wrong:
        parse_record(line, 1)
    assert str(wrong.value).startswith(why)
