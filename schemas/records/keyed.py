"""Reads only the keys and values of stored batches, for a coordinator that loads its state."""

import struct
from typing import Final, NamedTuple

from schemas.records.batch import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    LOG_OVERHEAD,
    TRANSACTIONAL_BIT,
)
from schemas.records.record import keys_and_values

__all__ = ["Plain", "read_plain"]

_HEADER: Final = struct.Struct(">qi4xb4xhi30xi")
"""base_offset, batch_length, magic, attributes, last_offset_delta, records_count; the others are skipped."""
_NOT_PLAIN: Final = COMPRESSION_MASK | TRANSACTIONAL_BIT | CONTROL_BIT


class Plain(NamedTuple):
    """The contents of some plain batches. A plain batch is not compressed, is part of no transaction, and has
    no record headers.
    """

    records: list[tuple[bytes, bytes | None]]
    """The keys and values; records without a key are left out."""
    position: int
    """The position of the first batch that was not read."""
    next_offset: int | None
    """The offset after the last batch that was read; None if no batch was read."""


def read_plain(data: bytes, position: int, most: int) -> Plain:
    """Read batches from `position` on, until `most` records are read or a batch is not whole or not plain."""
    found: list[tuple[bytes, bytes | None]] = []
    next_offset = None
    last, unpack = len(data) - HEADER_BYTES, _HEADER.unpack_from
    while position <= last and len(found) < most:
        base_offset, length, magic, attributes, last_offset_delta, count = unpack(data, position)
        end = position + LOG_OVERHEAD + length
        if magic != 2 or attributes & _NOT_PLAIN or count < 0 or end > len(data):
            break
        records = keys_and_values(data, position + HEADER_BYTES, end, count)
        if records is None:
            break
        found += records
        position, next_offset = end, base_offset + last_offset_delta + 1
    return Plain(found, position, next_offset)
