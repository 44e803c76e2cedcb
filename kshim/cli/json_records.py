"""Records as lines of JSON, which `kshim consume --json` writes and `kshim produce --json` reads.

    {"topic": "orders", "partition": 0, "offset": 7, "timestamp_ms": 1795392986511,
     "key": "en", "value": {"base64": "AP8="}, "headers": [["trace", "a1"]]}

Bytes that are UTF-8 are text, other bytes an object with their base64, and null is null. So every record
comes back as it was.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final

from kshim.client.faults import did_you_mean
from kshim.client.record import Consumed, Headers, NewRecord

FIELDS: Final = ("topic", "partition", "offset", "timestamp_ms", "key", "value", "headers")
BASE64: Final = "base64"
_NOTHING: Final = object()


class WrongRecord(ValueError):
    """A line is no record. str() says why."""


def json_line(record: Consumed) -> str:
    """The record as one line, without its end."""
    shown = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": _shown(record.key),
        "value": _shown(record.value),
        "headers": [[name, _shown(value)] for name, value in record.headers],
    }
    return json.dumps(shown, ensure_ascii=False, separators=(", ", ": "))


def parse_record(line: bytes, number: int) -> NewRecord:
    """Parse a line. Its topic and offset count for nothing. Raises WrongRecord."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WrongRecord(f"expected a JSON object: {error}") from None
    if not isinstance(found, dict):
        raise WrongRecord('expected a JSON object, as in {"key": "a", "value": "b"}')
    for name in found:
        if name not in FIELDS:
            raise WrongRecord(f"unknown field {name!r}{did_you_mean(name, FIELDS)}")
    if "value" not in found:
        raise WrongRecord('expected a "value"; it may be null')
    return NewRecord(
        key=_bytes("key", found.get("key")),
        value=_bytes("value", found["value"]),
        headers=_headers(found.get("headers")),
        timestamp_ms=_number("timestamp_ms", found, -1, 2**63 - 1),
        partition=_number("partition", found, 0, 2**31 - 1),
        number=number,
    )


def _shown(data: bytes | None) -> str | Mapping[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {BASE64: b64encode(data).decode()}


def _bytes(name: str, shown: object) -> bytes | None:
    if shown is None:
        return None
    try:
        if isinstance(shown, str):
            return shown.encode()
        if isinstance(shown, dict) and shown.keys() == {BASE64} and isinstance(shown[BASE64], str):
            return b64decode(shown[BASE64], validate=True)
    except ValueError as error:
        raise WrongRecord(f"{name}: {error}") from None
    raise WrongRecord(f'{name}: expected text, null, or {{"{BASE64}": "…"}}; put JSON into a string')


def _headers(shown: object) -> Headers:
    if shown is None:
        return ()
    pairs = list(shown.items()) if isinstance(shown, dict) else shown
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs
    ):
        raise WrongRecord('headers: expected [["name", "value"], …] or {"name": "value"}')
    return tuple((name, _bytes(f"header {name}", value)) for name, value in pairs)


def _number(name: str, found: Mapping[str, Any], low: int, high: int) -> int | None:
    number = found.get(name)
    if number is None:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
        raise WrongRecord(f"{name}: expected a whole number from {low} to {high}")
    return number
