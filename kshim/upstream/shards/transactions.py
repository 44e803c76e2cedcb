"""The offsets that transactions have committed in a shard, while its log still has records of them.

A pending offset is a record of the shard's leader. The end of its transaction is a marker, which the upstream
writes behind it. Kafka keeps markers only for a while. So once a transaction has ended, and no other one is
open for the same offset, the leader writes the current value as a plain record, and removes the pending
records with it. This module knows which pending records are left. The coordinator knows their contents and
the current values.

Pure: records and markers are passed in, in the order of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kshim.coordination.fencing import MOST_PRODUCERS
from kshim.upstream.shards.tenure import Entry
from schemas.internal_topics.pending_offset import (
    PendingKey,
    PendingValue,
    decode_pending_key,
    encode_pending_key,
    encode_pending_value,
)
from schemas.records.end_txn_marker import EndTxnMarker

NO_MARKER = -1


class _Open(NamedTuple):
    """A transaction that has not ended yet."""

    producer_epoch: int
    offset_keys: dict[bytes, bytes]
    """The keys of its offsets, by the keys of its pending records."""


class ShardTransactions:
    """The transactions of one shard since it was taken over."""

    def __init__(self, next_number: int = 0) -> None:
        """next_number: number of the next pending record; start with the shard's end offset. Numbers never
        exceed offsets, so no number repeats.
        """
        self._next_number = next_number
        self.since = 0
        """The offset after the last marker that was applied."""
        self._open: dict[int, _Open] = {}
        """The open transactions, by producer id."""
        self._ended: dict[bytes, dict[bytes, bool]] = {}
        """The pending records to remove, each with True if it was committed; by their offset's key."""
        self._undecided: dict[bytes, int] = {}
        """The number of an offset's pending records in open transactions, by the offset's key."""
        self._markers: dict[int, int] = {}
        """The offset of each producer's last marker, by producer id."""

    def __bool__(self) -> bool:
        """True if pending records have to be removed, now or later."""
        return bool(self._open or self._ended)

    def last_marker(self, producer_id: int) -> int:
        """Return the offset of a producer's last applied marker; NO_MARKER if it is not known."""
        return self._markers.get(producer_id, NO_MARKER)

    def is_open(self, producer_id: int, producer_epoch: int) -> bool:
        """True if a transaction has pending offsets and has not ended, as far as the log was read."""
        found = self._open.get(producer_id)
        return found is not None and found.producer_epoch == producer_epoch

    # ---- records and markers in the log, or about to be

    def pending(self, producer: Sequence[int], entries: Iterable[Entry]) -> list[Entry]:
        """Return the records by which the leader commits offsets of a transaction.

        producer: its id and epoch.
        """
        producer_id, producer_epoch, *_ = producer
        found: list[Entry] = []
        for offset_key, offset_value in entries:
            assert offset_value is not None
            key = encode_pending_key(PendingKey(producer_id, self._next_number, offset_key))
            self._next_number += 1
            self._opened(producer_id, producer_epoch, key, offset_key)
            found.append((key, encode_pending_value(PendingValue(producer_epoch, self.since, offset_value))))
        return found

    def wrote(self, key: bytes, value: PendingValue) -> PendingKey | None:
        """Note a pending record. None if it came too late, after its transaction had ended.

        Raises MalformedMessage.
        """
        found = decode_pending_key(key)
        if self.last_marker(found.producer_id) >= value.since:
            self._ended.setdefault(found.offset_key, {})[key] = False
            return None
        self._opened(found.producer_id, value.producer_epoch, key, found.offset_key)
        return found

    def removed(self, key: bytes) -> None:
        """Note that a pending record is removed. Raises MalformedMessage."""
        found = decode_pending_key(key)
        transaction = self._open.get(found.producer_id)
        if transaction is not None and transaction.offset_keys.pop(key, None) is not None:
            self._decided(found.offset_key)
        self._forget(found.offset_key, key)

    def ended(self, marker: EndTxnMarker, offset: int) -> None:
        """Note the end of a transaction. offset: where its marker is."""
        self._markers.pop(marker.producer_id, None)
        self._markers[marker.producer_id] = offset
        if len(self._markers) > MOST_PRODUCERS:
            del self._markers[next(iter(self._markers))]
        self.since = offset + 1
        transaction = self._open.pop(marker.producer_id, None)
        for key, offset_key in transaction.offset_keys.items() if transaction is not None else ():
            self._decided(offset_key)
            self._ended.setdefault(offset_key, {})[key] = marker.committed

    # ---- what is left to do

    def to_keep(self) -> list[bytes]:
        """Return the keys of the offsets whose current values have to be written."""
        return [key for key in self._settled() if any(self._ended[key].values())]

    def removals(self, offset_keys: Iterable[bytes] | None = None) -> list[Entry]:
        """Return the records that remove pending ones of these offsets, or of all for None, except those with
        an open transaction. They are returned once.
        """
        settled = self._settled() if offset_keys is None else filter(self._is_settled, offset_keys)
        return [(key, None) for offset_key in list(settled) for key in self._ended.pop(offset_key, ())]

    def _settled(self) -> Iterator[bytes]:
        return filter(self._is_settled, self._ended)

    def _is_settled(self, offset_key: bytes) -> bool:
        return offset_key not in self._undecided

    # ---- inside

    def _opened(self, producer_id: int, producer_epoch: int, key: bytes, offset_key: bytes) -> None:
        transaction = self._open.get(producer_id)
        offset_keys = {} if transaction is None else transaction.offset_keys
        self._open[producer_id] = _Open(producer_epoch, offset_keys)
        if key not in offset_keys:
            offset_keys[key] = offset_key
            self._undecided[offset_key] = self._undecided.get(offset_key, 0) + 1

    def _decided(self, offset_key: bytes) -> None:
        self._undecided[offset_key] -= 1
        if not self._undecided[offset_key]:
            del self._undecided[offset_key]

    def _forget(self, offset_key: bytes, key: bytes) -> None:
        ended = self._ended.get(offset_key)
        if ended is not None and ended.pop(key, None) is not None and not ended:
            del self._ended[offset_key]
