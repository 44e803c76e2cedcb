"""Keys and values of __transaction_state, the topic in which Kafka keeps the state of transactional ids.

A key is an int16, 0, then the transactional id. A value is an int16 version, then the fields of that version.
A null value deletes the transactional id. Both versions are read; v1 is written, as by Kafka 4.2 with
transaction.version 1 or higher (KIP-890). v1 is flexible: its tagged fields exist only for some transactions.
"""

from typing import Final

from schemas import compiled
from schemas.message import MalformedMessage, entity, field, message
from schemas.primitives import array, int8, int16, int32, int64, nullable_array, string

__all__ = [
    "PartitionsSchema",
    "TransactionLogKey",
    "TransactionLogValue",
    "decode_key",
    "decode_value",
    "encode_key",
    "encode_value",
]

KEY_KIND: Final = 0
VERSIONS: Final = range(2)
WRITTEN_VERSION: Final = 1


@message(versions=range(1), flexible=None)
class TransactionLogKey:
    transactional_id: str = field(string)


@entity
class PartitionsSchema:
    topic: str = field(string)
    partition_ids: tuple[int, ...] = field(array(int32))


@message(versions=VERSIONS, flexible=1)
class TransactionLogValue:
    """The state of a transactional id."""

    producer_id: int = field(int64)
    previous_producer_id: int = field(int64, since=1, tag=0, default=-1)
    """The producer id before the current one, while it changes."""
    next_producer_id: int = field(int64, since=1, tag=1, default=-1)
    """The producer id after the current one, while it changes."""
    producer_epoch: int = field(int16)
    next_producer_epoch: int = field(int16, since=1, tag=3, default=-1)
    transaction_timeout_ms: int = field(int32)
    transaction_status: int = field(int8)
    """The state as Kafka's number."""
    transaction_partitions: tuple[PartitionsSchema, ...] | None = field(nullable_array(PartitionsSchema))
    """None in the state Empty."""
    transaction_last_update_timestamp_ms: int = field(int64)
    transaction_start_timestamp_ms: int = field(int64)
    client_transaction_version: int = field(int16, since=1, tag=2)
    """2 if every transaction has a new producer epoch, else 0."""


def encode_key(transactional_id: str) -> bytes:
    key: bytes = compiled.encoder(TransactionLogKey, 0)(
        TransactionLogKey(transactional_id=transactional_id), KEY_KIND.to_bytes(2)
    )
    return key


def encode_value(value: TransactionLogValue) -> bytes:
    encoded: bytes = compiled.encoder(TransactionLogValue, WRITTEN_VERSION)(
        value, WRITTEN_VERSION.to_bytes(2)
    )
    return encoded


def decode_key(data: bytes) -> str | None:
    """Decode a key to its transactional id; None for another kind of key. Raises MalformedMessage."""
    if _number(data, "TransactionLogKey") != KEY_KIND:
        return None
    key, end = compiled.decoder(TransactionLogKey, 0)(data, 2)
    if end != len(data):
        raise compiled.overfull(TransactionLogKey, 0, data, end)
    transactional_id: str = key.transactional_id
    return transactional_id


def decode_value(data: bytes | None) -> TransactionLogValue | None:
    """Decode a value; None for a null value. Raises MalformedMessage, also for an unknown version."""
    if data is None:
        return None
    version = _number(data, "TransactionLogValue")
    if version not in VERSIONS:
        raise MalformedMessage("an unknown version", api="TransactionLogValue", version=version)
    value: TransactionLogValue
    value, end = compiled.decoder(TransactionLogValue, version)(data, 2)
    if end != len(data):
        raise compiled.overfull(TransactionLogValue, version, data, end)
    return value


def _number(data: bytes, of: str) -> int:
    if len(data) < 2:
        raise MalformedMessage(f"{len(data)} bytes are too few", api=of, version=-1)
    return int.from_bytes(data[:2], signed=True)
