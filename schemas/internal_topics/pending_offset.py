"""Key and value of the pending offsets in __kshim_groups: a transaction has committed them, and they count if
its end, a marker of Kafka's behind them in the log, says so.

They wrap key and value of an offset as __consumer_offsets has them. The key begins with an int16, the kind of
the record, of which Kafka has none. A null value: nothing of the transaction is left to be told.
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
    """Which offset, and by whose transaction. Each record has a key of its own, so that compaction removes
    none in favour of one that does not count.
    """

    producer_id: int
    number: int
    """That of no other record of the shard."""
    offset_key: bytes


class PendingValue(NamedTuple):
    """What is committed."""

    producer_epoch: int
    since: int
    """Where the transaction's marker can be at the earliest: if one of its producer lies from there on up to
    this record, this record came too late, and does not count.
    """
    offset_value: bytes


def encode_pending_key(key: PendingKey) -> bytes:
    return _KEY.pack(KEY, key.producer_id, key.number) + key.offset_key


def decode_pending_key(data: bytes) -> PendingKey:
    """The key that begins with `KEY`. Raises MalformedMessage."""
    if len(data) <= _KEY.size:
        raise MalformedMessage("it is too short", api="PendingOffset", version=_VERSION)
    _, producer_id, number = _KEY.unpack_from(data)
    return PendingKey(producer_id, number, data[_KEY.size :])


def encode_pending_value(value: PendingValue) -> bytes:
    return _VALUE.pack(_VERSION, value.producer_epoch, value.since) + value.offset_value


def decode_pending_value(data: bytes) -> PendingValue:
    """Raises MalformedMessage, also for an unknown version."""
    version, epoch, since = _VALUE.unpack_from(data) if len(data) > _VALUE.size else (-1, -1, -1)
    if version != _VERSION:
        raise MalformedMessage("an unknown version", api="PendingOffset", version=version)
    return PendingValue(epoch, since, data[_VALUE.size :])
