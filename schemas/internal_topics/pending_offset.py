"""Key and value of the pending offsets in __kshim_groups, which a client has committed in a transaction.

They count if the transaction is committed: Kafka's marker behind them in the log says so. They wrap the key
and the value that the offset has in __consumer_offsets. The key begins with an int16, a kind of record that
Kafka does not use. A null value removes a pending offset that is no longer needed.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from schemas.message import MalformedMessage

KEY: Final = (0x4B54).to_bytes(2)
"""The kind of record, "KT"."""
_KEY: Final = Struct(">2sqq")
_VALUE: Final = Struct(">hhq")
_VERSION: Final = 0


class PendingKey(NamedTuple):
    """An offset, and the producer in whose transaction it is. Every record has another key, so compaction
    does not replace a record by a later one that does not count.
    """

    producer_id: int
    number: int
    """A number that no other record of the shard has."""
    offset_key: bytes


class PendingValue(NamedTuple):
    """A pending offset's value."""

    producer_epoch: int
    since: int
    """The earliest offset that the transaction's marker can have. If the producer has a marker between that
    offset and this record, this record came too late, and does not count.
    """
    offset_value: bytes


def encode_pending_key(key: PendingKey) -> bytes:
    return _KEY.pack(KEY, key.producer_id, key.number) + key.offset_key


def decode_pending_key(data: bytes) -> PendingKey:
    """Decode a key that begins with `KEY`. Raises MalformedMessage."""
    if len(data) <= _KEY.size:
        raise MalformedMessage("it is too short", api="PendingOffset", version=_VERSION)
    _, producer_id, number = _KEY.unpack_from(data)
    return PendingKey(producer_id, number, data[_KEY.size :])


def encode_pending_value(value: PendingValue) -> bytes:
    return _VALUE.pack(_VERSION, value.producer_epoch, value.since) + value.offset_value


def decode_pending_value(data: bytes) -> PendingValue:
    """Decode a value. Raises MalformedMessage, also for an unknown version."""
    version, epoch, since = _VALUE.unpack_from(data) if len(data) > _VALUE.size else (-1, -1, -1)
    if version != _VERSION:
        raise MalformedMessage("an unknown version", api="PendingOffset", version=version)
    return PendingValue(epoch, since, data[_VALUE.size :])
