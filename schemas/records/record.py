"""One record of a batch: its deltas and lengths are varints; key, value and headers are plain bytes.

`schemas.records.batch` does the compression and has the base of the deltas. A length that leads past the end
of the bytes is noticed when the bytes end, so it takes no memory.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from schemas.error_code import ErrorCode

__all__ = [
    "BatchExpandsTooFar",
    "CorruptRecordBatch",
    "Record",
    "check_lengths",
    "decode_records",
    "encode_plain_records",
    "encode_record",
    "invalid_record",
    "keys_and_values",
    "move_timestamp",
    "split_records",
]


class CorruptRecordBatch(Exception):
    """A batch that Kafka would refuse."""

    def __init__(self, error_code: ErrorCode, reason: str, *, is_whole: bool = False) -> None:
        super().__init__(reason)
        self.error_code = error_code  # the error code of Kafka's answer
        self.is_whole = is_whole  # True if the bytes arrived as they were sent, but are impossible


class BatchExpandsTooFar(CorruptRecordBatch):
    """A batch that Kafka would accept, but whose records have more bytes than the caller allows."""


class Record(NamedTuple):
    """One record. `offset` is absolute; a None key or value is null on the wire."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def invalid_record(reason: str, *, is_whole: bool = True) -> CorruptRecordBatch:
    return CorruptRecordBatch(ErrorCode.INVALID_RECORD, reason, is_whole=is_whole)


def encode_record(into: bytearray, record: Record, timestamp_delta: int, offset_delta: int) -> None:
    """Append a record to `into`. The deltas are relative to the header of its batch."""
    _, _, key, value, headers = record
    parts = [b"\0", _varint(timestamp_delta), _varint(offset_delta)]  # the first byte: attributes
    for data in (key, value):
        parts += (_NULL,) if data is None else (_varint(len(data)), data)
    parts.append(_varint(len(headers)))
    for name, data in headers:
        encoded = name.encode()
        parts += (_varint(len(encoded)), encoded)
        parts += (_NULL,) if data is None else (_varint(len(data)), data)
    body = b"".join(parts)
    into += _varint(len(body))
    into += body


def encode_plain_records(entries: Sequence[tuple[bytes | None, bytes | None]]) -> bytes:
    """The bytes of records with these keys and values, without headers, at the timestamp of their batch."""
    pieces: list[bytes] = []
    for offset_delta, (key, value) in enumerate(entries):
        delta = _length(offset_delta)
        key_length = _NULL if key is None else _length(len(key))
        value_length = _NULL if value is None else _length(len(value))
        key, value = key or b"", value or b""
        size = 3 + len(delta) + len(key_length) + len(key) + len(value_length) + len(value)
        # the attributes and the timestamp delta before the offset delta, and the number of headers, are 0
        pieces += (_length(size), b"\0\0", delta, key_length, key, value_length, value, b"\0")
    return b"".join(pieces)


_NULL = b"\x01"
"""The varint of the length -1, which stands for null."""


def _varint(value: int) -> bytes:
    """The bytes of a signed varint: zigzag and base 128, as in Protocol Buffers."""
    if -64 <= value < 64:
        return _SMALL_VARINTS[value]
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_length = lru_cache(4096)(_varint)
"""A cached `_varint` for lengths and offset deltas, which are small and come again."""
_SMALL_VARINTS = {value: bytes(((value << 1) ^ (value >> 63),)) for value in range(-64, 64)}


def decode_records(
    body: bytes, count: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> Iterator[Record]:
    """The `count` records that fill `body` exactly. append_time: the timestamp of all records; None if each
    has its own.

    Raises CorruptRecordBatch, possibly after some records, if the bytes contradict themselves. A timestamp
    beyond 64 bits overflows, as it does in Kafka and in Java's clients.
    """
    # Nearly every varint of a record has one byte, so that case is written out.
    position = 0
    try:
        for _ in range(count):
            length, position = _read_varint(body, position)
            end = position + length
            timestamp_delta, position = _read_varint(body, position + 1)
            if (byte := body[position]) < 0x80:
                offset_delta, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                offset_delta, position = _read_varint(body, position)
                if not -(2**31) <= offset_delta < 2**31:
                    raise invalid_record(f"an offset delta of {offset_delta}")
            if (byte := body[position]) < 0x80:
                length, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                length, position = _read_varint(body, position)
            key = None
            if length >= 0:
                key = body[position : position + length]
                position += length
            length, position = _read_varint(body, position)
            value = None
            if length >= 0:
                value = body[position : position + length]
                position += length
            headers: tuple[tuple[str, bytes | None], ...] = ()
            if body[position] == 0:
                position += 1
            else:
                headers, position = _read_headers(body, position)
            if position != end or end > len(body):
                raise invalid_record(
                    f"a record ends at byte {position} of the records, its length says {end}"
                )
            timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
            if not -(2**63) <= timestamp < 2**63:
                timestamp = _java_long(timestamp)
            yield Record(base_offset + offset_delta, timestamp, key, value, headers)
    except IndexError:
        raise invalid_record("a record runs past the end of its batch") from None
    if position != len(body):
        raise invalid_record(f"{len(body) - position} bytes are left behind the last record")


def keys_and_values(
    data: bytes, position: int, end: int, count: int
) -> list[tuple[bytes, bytes | None]] | None:
    """The keys and values of the `count` records that fill `data` from `position` to `end`. Takes less than
    half the time of `decode_records`.

    Leaves out records without a key. Returns None for records with headers, and for bytes that contradict
    themselves. A hot path: a coordinator loads all its stored records by it.
    """
    found: list[tuple[bytes, bytes | None]] = []
    try:
        for _ in range(count):
            byte = data[position]
            if byte & 1:
                return None
            if byte < 0x80:
                record_end = position + 1 + (byte >> 1)
                position += 2
            elif (second := data[position + 1]) < 0x80:
                record_end = position + 2 + (byte >> 1 & 0x3F) + (second << 6)
                position += 3
            else:
                length, position = _read_varint(data, position)
                record_end = position + length
                position += 1
            if data[position] < 0x80:
                position += 1
            else:
                _, position = _read_varint(data, position)
            if data[position] < 0x80:
                position += 1
            else:
                offset_delta, position = _read_varint(data, position)
                if not -(2**31) <= offset_delta < 2**31:
                    return None
            if (byte := data[position]) < 0x80:
                length, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                length, position = _read_varint(data, position)
            key = None
            if length >= 0:
                key = data[position : position + length]
                position += length
            if (byte := data[position]) < 0x80:
                length, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                length, position = _read_varint(data, position)
            value = None
            if length >= 0:
                value = data[position : position + length]
                position += length
            if data[position]:
                return None
            position += 1
            if position != record_end:
                return None
            if key is not None:
                found.append((key, value))
    except (IndexError, CorruptRecordBatch):
        return None
    return found if position == end else None


def _java_long(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


_BEYOND = 1 << 40
# The distance by which the first byte of a record's length moves the position, and that of its second byte. A
# length that is not positive, or that has a needless byte or a third one, leads beyond any batch.
_FIRST = [
    *(1 + (byte >> 1) if byte and not byte & 1 else _BEYOND for byte in range(128)),
    *(2 + (byte - 128 >> 1) if not byte & 1 else _BEYOND for byte in range(128, 256)),
]
_SECOND = [byte << 6 if 0 < byte < 128 else _BEYOND for byte in range(256)]
_LEAST_BLOCK, _MOST_BLOCK = 32, 1024


_LARGE_RECORD_BYTES = 256
"""The size of a record from which copying it costs more than two look-ups in a memoryview."""


def check_lengths(body: bytes | memoryview, count: int) -> None:
    """Check, by their lengths alone, that `count` records fill `body` exactly. Raises CorruptRecordBatch."""
    if len(body) < _LARGE_RECORD_BYTES * count:
        body = bytes(body)
    if not _short_lengths_fill(body, count):
        _check_each_length(bytes(body), count)


def _short_lengths_fill(body: bytes | memoryview, count: int) -> bool:
    """True if `count` records fill `body` exactly. False also if a length has more than two bytes, which is
    rare. A hot path.
    """
    position, first, second = 0, _FIRST, _SECOND
    block = _LEAST_BLOCK
    try:
        while count > 0:
            if count >= block and (end := _end_of_equals(body, position, block)):
                position = end
                count -= block
                block = min(2 * block, _MOST_BLOCK)
                continue
            if block > _LEAST_BLOCK:
                block = _LEAST_BLOCK
                continue
            for _ in range(min(count, block)):
                byte = body[position]
                position += first[byte] if byte < 128 else first[byte] + second[body[position + 1]]
            count -= block
    except IndexError:
        return False
    return position == len(body)


def _end_of_equals(body: bytes | memoryview, position: int, block: int) -> int:
    """The end of `block` records if all are as long as the first one; else 0.

    In that case each begins with the same bytes of length, at equal distances.
    """
    byte = body[position]
    size = _FIRST[byte] if byte < 128 else _FIRST[byte] + _SECOND[body[position + 1]]
    end = position + block * size
    if bytes(body[position:end:size]) != bytes((byte,)) * block:
        return 0
    if byte >= 128 and bytes(body[position + 1 : end : size]) != bytes((body[position + 1],)) * block:
        return 0
    return end


def check_sizes(body: bytes, count: int, most_bytes: int) -> None:
    """Check that no record has more than `most_bytes`, and that `count` of them fill the body."""
    _check_each_length(body, count, most_bytes)


def _check_each_length(body: bytes, count: int, most_bytes: int = 2**31 - 1) -> None:
    position = 0
    try:
        for _ in range(count):
            length, position = _read_varint(body, position)
            if length <= 0:
                raise invalid_record(f"a record of {length} bytes")
            if length > most_bytes:
                raise invalid_record(f"a record of {length} bytes, where {most_bytes} are allowed")
            position += length
    except IndexError:
        position = -1
    if position != len(body):
        raise invalid_record(f"{count} records do not fill {len(body)} bytes")


def split_records(body: bytes, count: int) -> Iterator[bytes]:
    """The bytes of each record. body: `decode_records` has read it without an error."""
    start = 0
    for _ in range(count):
        length, position = _read_varint(body, start)
        yield body[start : position + length]
        start = position + length


def move_timestamp(record: bytes, shift_ms: int) -> bytes:
    """The bytes of a record with `shift_ms` added to its timestamp delta."""
    _, position = _read_varint(record, 0)
    delta_ms, rest = _read_varint(record, position + 1)
    if not -(2**63) <= delta_ms + shift_ms < 2**63:
        raise invalid_record(f"a timestamp delta of {delta_ms} ms")
    moved = record[position : position + 1] + _varint(delta_ms + shift_ms) + record[rest:]
    return _varint(len(moved)) + moved


def _read_headers(body: bytes, position: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, position = _read_varint(body, position)
    if not 0 <= count <= len(body) - position:
        raise invalid_record(f"{count} record headers")
    headers = []
    for _ in range(count):
        length, position = _read_varint(body, position)
        if length < 0:
            raise invalid_record(f"a record header's key of {length} bytes")
        name = body[position : position + length].decode(errors="replace")
        length, position = _read_varint(body, position + length)
        value = None
        if length >= 0:
            value = body[position : position + length]
            position += length
        headers.append((name, value))
    return tuple(headers), position


def _read_varint(body: bytes, position: int) -> tuple[int, int]:
    """(value, position after it). Raises IndexError at the end of `body`."""
    byte = body[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    rest, shift = byte & 0x7F, 7
    while True:
        position += 1
        byte = body[position]
        rest |= (byte & 0x7F) << shift
        if byte < 0x80:
            if shift == 63:
                rest &= (1 << 64) - 1  # as Java does
            return (rest >> 1) ^ -(rest & 1), position + 1
        shift += 7
        if shift > 63:
            raise invalid_record("a varint is longer than 10 bytes")
