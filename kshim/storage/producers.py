"""The state of a partition's producers: epochs, the last five batches of each, open transactions.

Pure. `Producers.replay` applies batches without checks: `kshim.producing.rules` checks them before they are
appended. The changes become durable together with the batches, so a restart loses none. Kafka keeps the same
state (KIP-98), in snapshots and in the index of aborted transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from schemas.records.batch import RecordBatchHeader
from schemas.records.end_txn_marker import EndTxnMarker

REMEMBERED_BATCHES = 5
MAX_PRODUCERS = 5000
"""Most producers of one partition. Beyond it, the longest idle one is forgotten, but none with an open
transaction.
"""
NO_TRANSACTION = -1

PRODUCER = Struct(">hiqq")
BATCH = Struct(">iiqq")


class SentBatch(NamedTuple):
    """A batch in the log. Its sequences are -1 if a coordinator has written it."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    timestamp_ms: int
    """The max timestamp of its records."""


class ProducerState(NamedTuple):
    """One producer in one partition."""

    producer_epoch: int
    coordinator_epoch: int
    """The coordinator epoch of its last marker; -1 if there was none."""
    last_timestamp_ms: int
    """The timestamp of its last batch or marker."""
    transaction_start: int
    """The first offset of its open transaction, or NO_TRANSACTION."""
    batches: tuple[SentBatch, ...]
    """The last five batches of this epoch, oldest first."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1


class Aborted(NamedTuple):
    """An aborted transaction, from its first record to its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    """The last stable offset after the marker. No transaction that ends later begins below it."""


class Produced(NamedTuple):
    """A batch with a producer id, at its offset in the log."""

    header: RecordBatchHeader
    base_offset: int
    timestamp_ms: int
    marker: EndTxnMarker | None
    """The marker in this batch; None if the batch ends no transaction."""


class Changes(NamedTuple):
    """The changes that batches make to the state of their producers."""

    producers: dict[int, ProducerState | None]
    """The new states by producer id; None for a forgotten producer."""
    aborted: tuple[Aborted, ...]


NO_CHANGES = Changes({}, ())


class Producers:
    """The producers of one partition as of its log end offset."""

    __slots__ = ("_ended", "_idle", "_open", "_producers")

    def __init__(self, known: Iterable[tuple[int, ProducerState]] = ()) -> None:
        # In the order of the producers' last batches: the first producer has been idle for longest.
        self._producers = dict(sorted(known, key=_last_offset))
        # The producers without an open transaction, in the same order.
        self._idle = {id_: None for id_, producer in self._producers.items() if _is_idle(producer)}
        # Producer id by the first offset of its open transaction; ascending, as new ones begin at the end.
        self._open = {
            producer.transaction_start: producer_id
            for producer_id, producer in sorted(
                self._producers.items(), key=lambda item: item[1].transaction_start
            )
            if producer.transaction_start != NO_TRANSACTION
        }
        # (first offset, offset of the marker) of ended transactions, until the marker is known to be durable.
        self._ended: list[tuple[int, int]] = []

    def get(self, producer_id: int) -> ProducerState | None:
        return self._producers.get(producer_id)

    def items(self) -> Iterator[tuple[int, ProducerState]]:
        return iter(self._producers.items())

    def last_stable_offset(self, high_watermark: int) -> int:
        """The first offset of the oldest transaction that has not ended below the high watermark; the high
        watermark if there is none.
        """
        if self._ended:
            self._ended = [ended for ended in self._ended if ended[1] >= high_watermark]
        undecided = next(iter(self._open), high_watermark)
        return min(high_watermark, undecided, *(first for first, _ in self._ended))

    def replay(self, batches: Sequence[Produced]) -> Changes:
        """Apply appended batches. Returns the changes that they make."""
        if not batches:
            return NO_CHANGES
        changed: dict[int, ProducerState | None] = {}
        aborted = []
        for batch in batches:
            if (ended := self._replay(batch)) is not None:
                aborted.append(ended)
            producer_id = batch.header.producer_id
            changed[producer_id] = self._producers.get(producer_id)
        while len(self._producers) > MAX_PRODUCERS:
            silent = next(iter(self._idle), None)
            if silent is None:
                break
            del self._producers[silent], self._idle[silent]
            changed[silent] = None
        return Changes(changed, tuple(aborted))

    def forget(self, silent_since_ms: int) -> list[int]:
        """Forget producers that have been idle since `silent_since_ms` and have no open transaction.

        Returns their ids.
        """
        silent = [
            producer_id
            for producer_id in self._idle
            if self._producers[producer_id].last_timestamp_ms <= silent_since_ms
        ]
        self.drop(silent)
        return silent

    def drop(self, producer_ids: Iterable[int]) -> None:
        """Drop producers that have no open transaction."""
        for producer_id in producer_ids:
            self._producers.pop(producer_id, None)
            self._idle.pop(producer_id, None)

    def _replay(self, batch: Produced) -> Aborted | None:
        header = batch.header
        if header.is_control:
            return None if batch.marker is None else self._end_transaction(batch.marker, batch.base_offset)
        known = self._producers.pop(header.producer_id, None)
        start = NO_TRANSACTION if known is None else known.transaction_start
        if header.is_transactional and start == NO_TRANSACTION:
            start = batch.base_offset
            self._open[start] = header.producer_id
        sent = SentBatch(header.base_sequence, header.last_sequence, batch.base_offset, batch.timestamp_ms)
        self._idle.pop(header.producer_id, None)
        if start == NO_TRANSACTION:
            self._idle[header.producer_id] = None
        is_same = known is not None and known.producer_epoch == header.producer_epoch
        self._producers[header.producer_id] = ProducerState(
            header.producer_epoch,
            -1 if known is None else known.coordinator_epoch,
            batch.timestamp_ms,
            start,
            (*known.batches[1 - REMEMBERED_BATCHES :], sent) if known is not None and is_same else (sent,),
        )
        return None

    def _end_transaction(self, marker: EndTxnMarker, offset: int) -> Aborted | None:
        known = self._producers.pop(marker.producer_id, None)
        self._idle.pop(marker.producer_id, None)
        self._idle[marker.producer_id] = None
        is_same = known is not None and known.producer_epoch == marker.producer_epoch
        self._producers[marker.producer_id] = ProducerState(
            marker.producer_epoch,
            marker.coordinator_epoch,
            marker.timestamp_ms,
            NO_TRANSACTION,
            known.batches if known is not None and is_same else (),
        )
        if known is None or known.transaction_start == NO_TRANSACTION:
            return None
        first_offset = known.transaction_start
        del self._open[first_offset]
        self._ended.append((first_offset, offset))
        if marker.committed:
            return None
        return Aborted(marker.producer_id, first_offset, offset, next(iter(self._open), offset + 1))


def _is_idle(producer: ProducerState) -> bool:
    return producer.transaction_start == NO_TRANSACTION


def _last_offset(item: tuple[int, ProducerState]) -> int:
    batches = item[1].batches
    return batches[-1].base_offset if batches else -1


def between(aborted: Iterable[Aborted], start: int, end: int) -> tuple[Aborted, ...]:
    """The transactions that have records between the offsets `start` and `end`.

    aborted: in the order of the markers, with all markers from `start` on.
    """
    found = []
    for transaction in aborted:
        if transaction.last_offset >= start and transaction.first_offset < end:
            found.append(transaction)
        if transaction.last_stable_offset >= end:
            break
    return tuple(found)


def encode_producer(producer: ProducerState) -> bytes:
    head = PRODUCER.pack(*producer[:4])
    return head + b"".join([BATCH.pack(*batch) for batch in producer.batches])


def decode_producer(value: bytes | memoryview) -> ProducerState:
    epoch, coordinator_epoch, last_timestamp_ms, transaction_start = PRODUCER.unpack_from(value)
    batches = tuple(SentBatch(*fields) for fields in BATCH.iter_unpack(value[PRODUCER.size :]))
    return ProducerState(epoch, coordinator_epoch, last_timestamp_ms, transaction_start, batches)
