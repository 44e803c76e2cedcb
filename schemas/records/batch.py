"""Record batch v2 (magic 2): the unit in which Kafka's records are produced, stored and fetched.

A batch is one header of 61 bytes and its records, compressed together. Offsets, timestamps and sequence
numbers of the records are relative to the header, and the CRC-32C covers only the bytes after it. So a server
can set the base offset and leader epoch of a batch without touching a record. See
https://kafka.apache.org/documentation/#recordbatch, KIP-98 (transactions) and KIP-32 (timestamps).
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cache, partial
from typing import Final, NamedTuple

from schemas.error_code import ErrorCode
from schemas.records.compression import (
    MAX_DECOMPRESSED_BYTES,
    BadCompression,
    Compression,
    ExpandsTooFar,
    compress,
    decompress,
)
from schemas.records.record import (
    BatchExpandsTooFar,
    CorruptRecordBatch,
    Record,
    check_lengths,
    check_sizes,
    decode_records,
    encode_plain_records,
    encode_record,
    invalid_record,
)

__all__ = [
    "HEADER_BYTES",
    "NO_TIMESTAMP",
    "BatchExpandsTooFar",
    "Compression",
    "CorruptRecordBatch",
    "Record",
    "RecordBatchHeader",
    "TimestampType",
    "assemble",
    "batches",
    "body_of",
    "check_records",
    "decode_header",
    "encode",
    "encode_entries",
    "is_transactional",
    "patch",
    "patch_in_place",
    "records",
    "records_in",
    "set_max_timestamp",
    "sole_batch",
    "validate",
]

View = bytes | bytearray | memoryview

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
BEFORE_COVERED, COVERED = struct.Struct(">qiibI"), struct.Struct(">hiqqqhii")
FIRST_COVERED: Final = 5  # the CRC covers the fields from this one on
INT16, INT32, INT64, UINT32 = map(struct.Struct, (">h", ">i", ">q", ">I"))
LOG_OVERHEAD = 12  # the bytes of base_offset and batch_length; batch_length does not count them
SMALLEST_LENGTH = 14  # Kafka treats anything shorter as corrupt, whatever its magic
MAGIC_AT = 16
CRC_AT, ATTRIBUTES_AT, MAX_TIMESTAMP_AT, PRODUCER_ID_END = 17, 21, 35, 51
NO_TIMESTAMP = -1
MAX_INT, MAX_LONG = 2**31 - 1, 2**63 - 1

COMPRESSION_MASK, LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, CONTROL_BIT = 0x07, 0x08, 0x10, 0x20
DELETE_HORIZON_BIT = 0x40
KNOWN_BITS = 0x7F


class TimestampType(IntEnum):
    """The meaning of the records' timestamps (message.timestamp.type)."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class RecordBatchHeader(NamedTuple):
    """The header's fields as they are on the wire, timestamps in ms."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size(self) -> int:
        """The size of the whole batch in bytes."""
        return LOG_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; it wraps at 2**31. -1 without a producer id."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & MAX_INT

    @property
    def compression(self) -> Compression:
        """The codec. Raises CorruptRecordBatch for one that Kafka does not have."""
        try:
            return Compression(self.attributes & COMPRESSION_MASK)
        except ValueError:
            raise _unknown_compression(self.attributes & COMPRESSION_MASK) from None

    @property
    def timestamp_type(self) -> TimestampType:
        return (
            TimestampType.LOG_APPEND_TIME
            if self.attributes & LOG_APPEND_TIME_BIT
            else TimestampType.CREATE_TIME
        )

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which on the batch's tombstones may be removed (KIP-534); None if it is not set.

        It is stored in place of the base timestamp.
        """
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None


class Encoded(NamedTuple):
    """A batch that was just encoded, with its header, so that nobody has to decode it."""

    header: RecordBatchHeader
    data: memoryview
    """The whole batch, writable."""


def crc32c(data: View, crc: int = 0) -> int:
    """CRC-32C of `data`, continuing from `crc`."""
    return _crc32c()(data, crc)


@cache
def _crc32c() -> Callable[[View, int], int]:
    import crc32c  # costs some ms, and a server that only coordinates groups may never need it

    function: Callable[[View, int], int] = crc32c.crc32c
    return function


# ---- headers


# Like `RecordBatchHeader._make`, but without its additional call.
_new_header: Callable[[tuple[int, ...]], RecordBatchHeader] = partial(tuple.__new__, RecordBatchHeader)


def decode_header(view: View, offset: int = 0) -> RecordBatchHeader:
    """Read the header that begins at `offset`. Only its length is checked. Raises CorruptRecordBatch."""
    try:
        return _new_header(HEADER.unpack_from(view, offset))
    except struct.error:
        raise _corrupt(f"{max(0, len(view) - offset)} bytes are no record batch") from None


def is_transactional(view: View) -> bool:
    """True if `view` begins with a whole batch that is part of a transaction.

    Raises CorruptRecordBatch for an impossible length or magic.
    """
    if _size_at(view, 0) is None:
        return False
    return view[MAGIC_AT] == 2 and bool(view[ATTRIBUTES_AT + 1] & TRANSACTIONAL_BIT)


def batches(view: View) -> Iterator[memoryview]:
    """The whole batches in `view` in order. As in Kafka, an incomplete batch at the end is left out.

    Raises CorruptRecordBatch at a batch with an impossible length or magic.
    """
    view = memoryview(view)
    position = 0
    while (size := _size_at(view, position)) is not None:
        yield view[position : position + size]
        position += size


def next_offset(view: View, otherwise: int) -> int:
    """The offset after the last whole batch in `view`; `otherwise` if there is none.

    Raises CorruptRecordBatch at a batch with an impossible length or magic.
    """
    last, position = None, 0
    while (size := _size_at(view, position)) is not None:
        last, position = position, position + size
    return otherwise if last is None else decode_header(view, last).next_offset


def sole_batch(view: View, *, allow_zstd: bool = True) -> memoryview:
    """The only batch, of magic 2, that a partition of a Produce request has from v3 on.

    allow_zstd: False below v7 (KIP-110). The beginning of another batch is allowed and left out. Raises
    CorruptRecordBatch with the error code of the answer; for UNKNOWN_SERVER_ERROR Kafka refuses the whole
    request.
    """
    size = _size_at(view, 0)
    if size is None:
        raise invalid_record("no whole record batch", is_whole=False)
    if view[MAGIC_AT] != 2:
        raise invalid_record(f"record batches must have magic 2, not {view[MAGIC_AT]}", is_whole=False)
    if not allow_zstd:
        _refuse_zstd(view[ATTRIBUTES_AT + 1] & COMPRESSION_MASK)
    if len(view) != size and _size_at(view, size) is not None:
        raise invalid_record("more than one record batch for a partition", is_whole=False)
    if size < PRODUCER_ID_END:
        raise CorruptRecordBatch(ErrorCode.UNKNOWN_SERVER_ERROR, _too_short(size))
    return memoryview(view)[:size]


def _too_short(size: int) -> str:
    return f"a record batch of {size} bytes is shorter than its header"


def _refuse_zstd(codec: int) -> None:
    if codec == Compression.ZSTD:
        raise CorruptRecordBatch(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce v7 or later")
    if codec > Compression.ZSTD:
        raise _unknown_compression(codec)


def validate(batch: View, *, max_batch_bytes: int = MAX_INT) -> RecordBatchHeader:
    """Check the header and CRC of one batch of magic 2 before its append, as Kafka does and in Kafka's order.
    Does not decode the records.

    max_batch_bytes: the topic's max.message.bytes. Raises CorruptRecordBatch with the error code of the
    answer.
    """
    (base_offset,) = INT64.unpack_from(batch, 0)
    if base_offset != 0:
        raise invalid_record(f"the base offset of a produced batch must be 0, not {base_offset}")
    if len(batch) < HEADER_BYTES:
        raise _corrupt(_too_short(len(batch)))
    header = _new_header(HEADER.unpack_from(batch, 0))
    size = header.size
    if size > max_batch_bytes:
        reason = f"a record batch of {size} bytes where {max_batch_bytes} are allowed"
        raise CorruptRecordBatch(ErrorCode.MESSAGE_TOO_LARGE, reason)
    if crc32c(memoryview(batch)[ATTRIBUTES_AT:size]) != header.crc:
        raise _corrupt(f"stored CRC {header.crc} does not match")
    _validate_fields(header)
    return header


def _validate_fields(header: RecordBatchHeader) -> None:
    if (codec := header.attributes & COMPRESSION_MASK) > Compression.ZSTD:
        raise _unknown_compression(codec)
    if header.last_offset_delta < 0:
        raise invalid_record(f"last offset delta {header.last_offset_delta} is negative")
    if header.records_count <= 0:
        raise invalid_record(f"a record count of {header.records_count}")
    if header.last_offset_delta + 1 != header.records_count:
        raise invalid_record(
            f"{header.records_count} records, but last offset delta {header.last_offset_delta}"
        )
    if header.attributes & CONTROL_BIT:
        raise invalid_record("clients may not write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise invalid_record(f"sequence number {header.base_sequence} for producer id {header.producer_id}")


def _size_at(view: View, position: int) -> int | None:
    """The size of the batch at `position` in bytes; None if it is not whole. Raises CorruptRecordBatch."""
    left = len(view) - position
    if left < LOG_OVERHEAD:
        return None
    (length,) = INT32.unpack_from(view, position + 8)
    if length < SMALLEST_LENGTH:
        raise _corrupt(f"record size {length} is less than the minimum of {SMALLEST_LENGTH}")
    if left <= MAGIC_AT:
        return None
    if view[position + MAGIC_AT] > 2:
        raise _corrupt(f"magic {view[position + MAGIC_AT]} is unknown")
    size = LOG_OVERHEAD + int(length)
    return size if size <= left else None


def _unknown_compression(codec: int) -> CorruptRecordBatch:
    return CorruptRecordBatch(
        ErrorCode.UNKNOWN_SERVER_ERROR, f"compression type {codec} is unknown", is_whole=True
    )


def _corrupt(reason: str) -> CorruptRecordBatch:
    return CorruptRecordBatch(ErrorCode.CORRUPT_MESSAGE, reason)


# ---- setting offset, epoch and timestamp


def patch(batch: View, base_offset: int, leader_epoch: int) -> bytes:
    """A copy of `batch` with another base offset and partition leader epoch, which the CRC does not cover."""
    view = memoryview(batch)
    return b"".join(
        (
            base_offset.to_bytes(8),
            view[8:LOG_OVERHEAD],
            leader_epoch.to_bytes(4, signed=True),
            view[MAGIC_AT:],
        )
    )


def patch_in_place(buffer: bytearray | memoryview, at: int, base_offset: int, leader_epoch: int) -> None:
    """Like `patch`, but changes the batch that begins at `at` in `buffer`."""
    INT64.pack_into(buffer, at, base_offset)
    INT32.pack_into(buffer, at + LOG_OVERHEAD, leader_epoch)


def set_max_timestamp(
    buffer: bytearray | memoryview, at: int, timestamp_type: TimestampType, timestamp_ms: int
) -> None:
    """Set the timestamp type and the max timestamp of the batch at `at`, and compute its CRC.

    With LogAppendTime the max timestamp counts for all records, whatever timestamps they have.
    """
    header = decode_header(buffer, at)
    attributes = header.attributes & KNOWN_BITS & ~LOG_APPEND_TIME_BIT | timestamp_type * LOG_APPEND_TIME_BIT
    INT16.pack_into(buffer, at + ATTRIBUTES_AT, attributes)
    INT64.pack_into(buffer, at + MAX_TIMESTAMP_AT, timestamp_ms)
    with memoryview(buffer) as view:
        crc = crc32c(view[at + ATTRIBUTES_AT : at + header.size])
    UINT32.pack_into(buffer, at + CRC_AT, crc)


# ---- encoding


def encode(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    last_offset_delta: int | None = None,
) -> bytes:
    """One batch of the records in their order, with CreateTime timestamps.

    last_offset_delta: None takes that of the last record. A batch that compaction has emptied keeps another.
    """
    body = bytearray()
    base_timestamp = max_timestamp = NO_TIMESTAMP
    count = last_delta = 0
    for record in records:
        if count == 0:
            base_timestamp = record.timestamp_ms
        count += 1
        if record.timestamp_ms > max_timestamp:
            max_timestamp = record.timestamp_ms
        last_delta = record.offset - base_offset
        encode_record(body, record, record.timestamp_ms - base_timestamp, last_delta)
    attributes = compression | TRANSACTIONAL_BIT * is_transactional | CONTROL_BIT * is_control
    payload = body if compression is Compression.NONE else compress(compression, body, level)
    last_delta = last_delta if last_offset_delta is None else last_offset_delta
    covered = COVERED.pack(
        *(attributes, last_delta, base_timestamp, max_timestamp),
        *(producer_id, producer_epoch, base_sequence, count),
    )
    return _join(base_offset, leader_epoch, covered, payload)


def encode_entries(
    entries: Sequence[tuple[bytes | None, bytes | None]],
    timestamp_ms: int,
    *,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
) -> Encoded:
    """Like `encode`, for records with these keys and values, all with one timestamp and without headers."""
    payload = encode_plain_records(entries)
    fields = (
        *(TRANSACTIONAL_BIT * is_transactional, len(entries) - 1, timestamp_ms, timestamp_ms),
        *(producer_id, producer_epoch, base_sequence, len(entries)),
    )
    crc = crc32c(payload, crc32c(COVERED.pack(*fields)))
    header = _new_header((0, HEADER_BYTES - LOG_OVERHEAD + len(payload), -1, 2, crc, *fields))
    return Encoded(header, memoryview(bytearray().join((HEADER.pack(*header), payload))))


def assemble(header: RecordBatchHeader, payload: bytes | bytearray) -> bytes:
    """A batch of this header and payload. Its length and CRC are computed."""
    covered = COVERED.pack(*header[FIRST_COVERED:])
    return _join(header.base_offset, header.partition_leader_epoch, covered, payload)


def _join(base_offset: int, leader_epoch: int, covered: bytes, payload: bytes | bytearray) -> bytes:
    """A batch of these fields and this payload. covered: the encoded fields that the CRC covers."""
    length = HEADER_BYTES - LOG_OVERHEAD + len(payload)
    crc = crc32c(payload, crc32c(covered))
    return b"".join((BEFORE_COVERED.pack(base_offset, length, leader_epoch, 2, crc), covered, payload))


# ---- decoding


def records(batch: View, *, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> Iterator[Record]:
    """The records of one whole batch, decompressed to at most `max_bytes`.

    Raises BatchExpandsTooFar. Raises CorruptRecordBatch, possibly after some records, if the bytes contradict
    themselves.
    """
    header = decode_header(batch)
    return records_in(header, body_of(header, batch, max_bytes))


def check_records(header: RecordBatchHeader, batch: View, *, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> None:
    """Check, by their lengths, that a validated batch has as many records as its header says.

    Raises CorruptRecordBatch, and BatchExpandsTooFar if the records expand to more than `max_bytes`.
    """
    if header.attributes & COMPRESSION_MASK == Compression.NONE:
        body: bytes | memoryview = memoryview(batch)[HEADER_BYTES : header.size]
    else:
        body = body_of(header, batch, max_bytes)
    check_lengths(body, header.records_count)


def check_record_sizes(header: RecordBatchHeader, batch: View, most_bytes: int, *, max_bytes: int) -> None:
    """Check that no record of a compressed batch has more than `most_bytes`. Raises like `check_records`."""
    check_sizes(body_of(header, batch, max_bytes), header.records_count, most_bytes)


def records_in(header: RecordBatchHeader, body: bytes) -> Iterator[Record]:
    append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else None
    return decode_records(body, header.records_count, header.base_offset, header.base_timestamp, append_time)


def body_of(header: RecordBatchHeader, batch: View, max_bytes: int) -> bytes:
    """The records of a batch, decompressed but not decoded. Raises CorruptRecordBatch, BatchExpandsTooFar."""
    if header.magic != 2 or not HEADER_BYTES <= header.size <= len(batch):
        raise _corrupt(f"magic {header.magic} and length {header.batch_length} in {len(batch)} bytes")
    if header.records_count < 0:
        raise invalid_record(f"a record count of {header.records_count}")
    view = memoryview(batch)[HEADER_BYTES : header.size]
    try:
        uncompressed = header.attributes & COMPRESSION_MASK == Compression.NONE
        return bytes(view) if uncompressed else decompress(header.compression, view, max_bytes)
    except ExpandsTooFar as error:
        raise BatchExpandsTooFar(ErrorCode.MESSAGE_TOO_LARGE, str(error), is_whole=True) from None
    except BadCompression as error:
        raise CorruptRecordBatch(ErrorCode.UNKNOWN_SERVER_ERROR, str(error), is_whole=True) from None
