"""The control batch with which a coordinator ends a transaction in one partition (KIP-98).

It has one record. The key has the kind of control record, and the value the epoch of the coordinator that
wrote it. The header of the batch has the id and epoch of the producer whose transaction ends.
"""

from struct import Struct
from typing import NamedTuple

from schemas.records.batch import Record, decode_header, encode, records
from schemas.records.record import invalid_record

__all__ = ["EndTxnMarker", "decode_marker", "encode_marker"]

ABORT, COMMIT = 0, 1
KEY = Struct(">hh")  # version, kind of control record
VALUE = Struct(">hi")  # version, coordinator epoch


class EndTxnMarker(NamedTuple):
    """The end of a producer's transaction."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    """The leader epoch of the coordinator that wrote it."""
    timestamp_ms: int


def encode_marker(marker: EndTxnMarker) -> bytes:
    """The marker as a batch of one control record, at offset 0."""
    key = KEY.pack(0, COMMIT if marker.committed else ABORT)
    value = VALUE.pack(0, marker.coordinator_epoch)
    return encode(
        [Record(0, marker.timestamp_ms, key, value)],
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def decode_marker(batch: bytes | bytearray | memoryview) -> EndTxnMarker | None:
    """The marker in a batch. Raises CorruptRecordBatch.

    Returns None if the batch ends no transaction: it has ordinary records or another kind of control record,
    or compaction has emptied it.
    """
    header = decode_header(batch)
    if not header.is_control:
        return None
    record = next(records(batch), None)
    if record is None:
        return None
    if record.key is None or len(record.key) < KEY.size:
        raise invalid_record(f"{record.key!r} is no key of a control record")
    _, kind = KEY.unpack_from(record.key)
    if kind not in (ABORT, COMMIT):
        return None
    if record.value is None or len(record.value) < VALUE.size:
        raise invalid_record(f"{record.value!r} is no value of a transaction's end")
    _, coordinator_epoch = VALUE.unpack_from(record.value)
    return EndTxnMarker(
        header.producer_id, header.producer_epoch, kind == COMMIT, coordinator_epoch, record.timestamp_ms
    )
