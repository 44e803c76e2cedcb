"""Batches of records with given timestamps."""

from schemas.records.batch import (
    Compression,
    Record,
    encode,
)


def batch_of(
    *timestamps_ms: int, value: bytes = b"value", compression: Compression = Compression.NONE
) -> bytes:
    return encode(
        (Record(delta, timestamp_ms, b"key", value) for delta, timestamp_ms in enumerate(timestamps_ms)),
        compression=compression,
    )
